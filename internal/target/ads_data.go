package target

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Campaigns that are there under every seed, with this name, status and budget.
const (
	CampaignAutumnSearch      = "2001001" // 秋の特価_検索, JPY 20000, enabled
	CampaignAutumnRetargeting = "2001002" // 秋の特価_検索_再訪問, JPY 15000, enabled: its look-alike
	CampaignNewLife           = "2001003" // 新生活応援セール2026, JPY 40000, enabled
	CampaignNewLifeWide       = "2001004" // 新生活応援セール２０２６ (full-width digits), JPY 40000, enabled
	CampaignSneakers          = "2001005" // スニーカー_一般, JPY 30000, enabled
	CampaignSneakersConfusing = "2001006" // スニーカー_ー般 (a long vowel mark for 一), JPY 3000, enabled
	CampaignMothersDay        = "2001007" // 母の日ギフト_検索, JPY 25000, enabled
	CampaignMothersDayRemoved = "2001008" // 母の日ギフト_検索_旧, JPY 25000, removed: a look-alike that is not live
	CampaignZeroBudget        = "2001010" // 休眠顧客の掘り起こし, JPY 0, enabled
	CampaignPaused            = "2001011" // 花見弁当の宅配予約, JPY 12000, paused
	CampaignRemoved           = "2001012" // 旧ブランド名_ディスプレイ, JPY 8000, removed

	CampaignKoreanAutumnSearch      = "1001001" // 가을특가_검색, KRW 200000, enabled
	CampaignKoreanAutumnRetargeting = "1001002" // 가을특가_검색_재방문, KRW 150000, enabled: its look-alike
	CampaignKoreanGifts             = "1001003" // 설날선물_디스플레이, KRW 300000, enabled
	CampaignKoreanGiftsNew          = "1001004" // 설날선물_디스플레이_신규, KRW 300000, enabled: its look-alike
	CampaignKoreanZeroBudget        = "1001010" // 휴면고객 되살리기, KRW 0, enabled
	CampaignKoreanPaused            = "1001011" // 벚꽃축제 사전예약, KRW 120000, paused

	CampaignDollars            = "3001001" // Autumn Sale Search, USD 120.50, enabled
	CampaignDollarsRetargeting = "3001002" // Autumn Sale Search Retargeting, USD 80.00, enabled: its look-alike
	CampaignDollarsPaused      = "3001011" // Cherry Blossom Preorders, USD 45.00, paused
)

// The people that the seed knows. The first three may read and change every campaign, the guest may only read.
const (
	UserSato   = "sato@agency.example"
	UserKim    = "kim@agency.example"
	UserTanaka = "tanaka@agency.example"
	UserGuest  = "guest@agency.example"
)

// PlainCount is how many plain campaigns there are in KRW and in JPY.
const PlainCount = 16

// PlainJPY is the ID of the i-th (from 0) plain JPY campaign: enabled, JPY 10000, with a name like no other. Tests
// that need a target of their own take one each; [Ads.Add] makes more.
func PlainJPY(i int) string { return fmt.Sprintf("2002%03d", plainIndex(i)) }

// PlainKRW is the ID of the i-th (from 0) plain KRW campaign: enabled, KRW 100000, with a name like no other.
func PlainKRW(i int) string { return fmt.Sprintf("1002%03d", plainIndex(i)) }

func plainIndex(i int) int {
	if i < 0 || i >= PlainCount {
		panic("target: there is no such plain campaign")
	}
	return i + 1
}

var fixedCampaigns = []Campaign{
	{ID: CampaignAutumnSearch, Name: "秋の特価_検索", DailyBudget: "20000"},
	{ID: CampaignAutumnRetargeting, Name: "秋の特価_検索_再訪問", DailyBudget: "15000"},
	{ID: CampaignNewLife, Name: "新生活応援セール2026", DailyBudget: "40000"},
	{ID: CampaignNewLifeWide, Name: "新生活応援セール２０２６", DailyBudget: "40000"},
	{ID: CampaignSneakers, Name: "スニーカー_一般", DailyBudget: "30000"},
	{ID: CampaignSneakersConfusing, Name: "スニーカー_ー般", DailyBudget: "3000"},
	{ID: CampaignMothersDay, Name: "母の日ギフト_検索", DailyBudget: "25000"},
	{ID: CampaignMothersDayRemoved, Name: "母の日ギフト_検索_旧", DailyBudget: "25000", Status: StatusRemoved},
	{ID: CampaignZeroBudget, Name: "休眠顧客の掘り起こし", DailyBudget: "0"},
	{ID: CampaignPaused, Name: "花見弁当の宅配予約", DailyBudget: "12000", Status: StatusPaused},
	{ID: CampaignRemoved, Name: "旧ブランド名_ディスプレイ", DailyBudget: "8000", Status: StatusRemoved},

	{ID: CampaignKoreanAutumnSearch, Name: "가을특가_검색", DailyBudget: "200000"},
	{ID: CampaignKoreanAutumnRetargeting, Name: "가을특가_검색_재방문", DailyBudget: "150000"},
	{ID: CampaignKoreanGifts, Name: "설날선물_디스플레이", DailyBudget: "300000"},
	{ID: CampaignKoreanGiftsNew, Name: "설날선물_디스플레이_신규", DailyBudget: "300000"},
	{ID: CampaignKoreanZeroBudget, Name: "휴면고객 되살리기", DailyBudget: "0"},
	{ID: CampaignKoreanPaused, Name: "벚꽃축제 사전예약", DailyBudget: "120000", Status: StatusPaused},

	{ID: CampaignDollars, Name: "Autumn Sale Search", DailyBudget: "120.50"},
	{ID: CampaignDollarsRetargeting, Name: "Autumn Sale Search Retargeting", DailyBudget: "80.00"},
	{ID: CampaignDollarsPaused, Name: "Cherry Blossom Preorders", DailyBudget: "45.00", Status: StatusPaused},
}

// The plain names have no word in common with each other or with any other name here.
var (
	plainJPY = []string{
		"北海道メロン予約販売", "京都紅葉バスツアー", "沖縄離島ダイビング体験", "博多明太子お歳暮特集",
		"信州そば打ち教室", "江戸切子グラス職人展", "青森りんごジュース定期便", "阿波踊り観覧席チケット",
		"富士山麓グランピング", "瀬戸内レモン化粧水", "飛騨家具ショールーム来店", "長崎カステラ法人ギフト",
		"会津漆器オンライン講座", "有馬温泉ペア宿泊券", "讃岐うどん冷凍パック", "仙台七夕浴衣レンタル",
	}
	plainKRW = []string{
		"제주감귤 산지직송", "한강유람선 야경투어", "전주비빔밥 밀키트", "강릉커피 원두구독",
		"부산국제영화제 굿즈", "안동하회탈 공예체험", "설악산 단풍열차", "보성녹차 화장품라인",
		"경주 역사기행 캠프", "이천도자기 혼수세트", "평창 스키리조트 시즌권", "남해 멸치쌈밥 택배",
		"인천공항 라운지멤버십", "대구근대골목 해설앱", "울릉도 오징어 추석상자", "여수밤바다 요트클럽",
	}
)

// seededCampaigns are all campaigns of a seed: the fixed, the plain and the generated.
func seededCampaigns(seed int64) []Campaign {
	random := rand.New(rand.NewPCG(uint64(seed), 0x6375746f6e6365))
	all := slices.Clone(fixedCampaigns)
	for i := range PlainCount {
		all = append(all,
			Campaign{ID: PlainJPY(i), Name: plainJPY[i], DailyBudget: "10000"},
			Campaign{ID: PlainKRW(i), Name: plainKRW[i], DailyBudget: "100000"})
	}
	all = append(all, generatedCampaigns(random)...)
	people := []string{UserSato, UserKim, UserTanaka}
	for i := range all {
		c := &all[i]
		c.Owner = people[random.IntN(len(people))]
		c.AccountID, c.Currency = accountOf(c.ID)
		if c.Status == "" {
			c.Status = StatusEnabled
		}
	}
	return all
}

// accountOf reads an ID's account: the first digit is the currency, the fourth the account's number.
func accountOf(id string) (account, currency string) {
	country := map[byte]string{'1': "kr", '2': "jp", '3': "us"}[id[0]]
	currency = map[byte]string{'1': "KRW", '2': "JPY", '3': "USD"}[id[0]]
	return "acc-" + country + "-0" + id[3:4], currency
}

// vocabulary is what generated names of one currency are put together from.
type vocabulary struct {
	prefix             string
	products, channels []string
	unit               int // a budget is a small multiple of it
	suffix             string
}

var vocabularies = []vocabulary{
	{prefix: "2003", unit: 1000, products: []string{"夏物Tシャツ", "ランドセル早割", "防災リュック", "加湿器"},
		channels: []string{"_検索", "_動画", "_ディスプレイ", "_アプリ"}},
	{prefix: "1003", unit: 10000, products: []string{"여름티셔츠", "캠핑의자", "공기청정기", "무선이어폰"},
		channels: []string{"_검색", "_동영상", "_디스플레이", "_앱"}},
	{prefix: "3003", unit: 5, suffix: ".00", products: []string{"Desk Lamps", "Trail Shoes", "Rain Jackets", "Office Chairs"},
		channels: []string{" Search", " Video", " Display", " App"}},
}

// generatedCampaigns gives each product two or three of its channels.
func generatedCampaigns(random *rand.Rand) []Campaign {
	var all []Campaign
	for _, v := range vocabularies {
		serial := 0
		for _, product := range v.products {
			channels := random.Perm(len(v.channels))[:2+random.IntN(2)]
			for _, channel := range channels {
				serial++
				all = append(all, Campaign{
					ID:          fmt.Sprintf("%s%03d", v.prefix, serial),
					Name:        product + v.channels[channel],
					DailyBudget: fmt.Sprintf("%d%s", v.unit*(1+random.IntN(50)), v.suffix),
					Status:      statusFor(random.IntN(10)),
				})
			}
		}
	}
	return all
}

// statusFor makes most campaigns enabled.
func statusFor(n int) string {
	switch n {
	case 0:
		return StatusRemoved
	case 1, 2:
		return StatusPaused
	}
	return StatusEnabled
}

func seededPermissions() []Permission {
	var all []Permission
	for _, user := range []string{UserSato, UserKim, UserTanaka, UserGuest} {
		all = append(all, Permission{User: user, Verb: "read", Allowed: true})
		if !strings.HasPrefix(user, "guest@") {
			all = append(all, Permission{User: user, Verb: "write", Allowed: true})
		}
	}
	return all
}
