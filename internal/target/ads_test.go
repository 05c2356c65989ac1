package target_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"github.com/cutonce/cutonce/internal/target"
)

type page struct {
	Campaigns  []target.Campaign `json:"campaigns"`
	Total      int               `json:"total"`
	NextCursor string            `json:"next_cursor"`
}

func TestOneSeedOnePlatform(t *testing.T) {
	t.Parallel()
	play := func(seed int64) []string {
		s := start(t, honourKeys, func(cfg *target.AdsConfig) { cfg.Seed = seed })
		return []string{
			s.get("/v1/campaigns?limit=100").body,
			s.set(id, "30000", "JPY", "k", "X-On-Behalf-Of", target.UserSato).body,
			s.get("/v1/campaigns?limit=100").body,
			s.get("/v1/log").body,
		}
	}
	if diff := cmp.Diff(play(1), play(1)); diff != "" {
		t.Errorf("two runs of one seed differ:\n%s", diff)
	}
	if play(1)[0] == play(2)[0] {
		t.Error("two seeds gave the same platform")
	}
}

func TestFixedCampaigns(t *testing.T) {
	t.Parallel()
	for seed := range int64(5) {
		s := start(t, func(cfg *target.AdsConfig) { cfg.Seed = seed })
		for id, want := range map[string]string{
			target.CampaignAutumnSearch:            "acc-jp-01 秋の特価_検索 enabled JPY 20000",
			target.CampaignAutumnRetargeting:       "acc-jp-01 秋の特価_検索_再訪問 enabled JPY 15000",
			target.CampaignNewLife:                 "acc-jp-01 新生活応援セール2026 enabled JPY 40000",
			target.CampaignNewLifeWide:             "acc-jp-01 新生活応援セール２０２６ enabled JPY 40000",
			target.CampaignSneakers:                "acc-jp-01 スニーカー_一般 enabled JPY 30000",
			target.CampaignSneakersConfusing:       "acc-jp-01 スニーカー_ー般 enabled JPY 3000",
			target.CampaignMothersDay:              "acc-jp-01 母の日ギフト_検索 enabled JPY 25000",
			target.CampaignMothersDayRemoved:       "acc-jp-01 母の日ギフト_検索_旧 removed JPY 25000",
			target.CampaignZeroBudget:              "acc-jp-01 休眠顧客の掘り起こし enabled JPY 0",
			target.CampaignPaused:                  "acc-jp-01 花見弁当の宅配予約 paused JPY 12000",
			target.CampaignRemoved:                 "acc-jp-01 旧ブランド名_ディスプレイ removed JPY 8000",
			target.CampaignKoreanAutumnSearch:      "acc-kr-01 가을특가_검색 enabled KRW 200000",
			target.CampaignKoreanAutumnRetargeting: "acc-kr-01 가을특가_검색_재방문 enabled KRW 150000",
			target.CampaignKoreanGifts:             "acc-kr-01 설날선물_디스플레이 enabled KRW 300000",
			target.CampaignKoreanGiftsNew:          "acc-kr-01 설날선물_디스플레이_신규 enabled KRW 300000",
			target.CampaignKoreanZeroBudget:        "acc-kr-01 휴면고객 되살리기 enabled KRW 0",
			target.CampaignKoreanPaused:            "acc-kr-01 벚꽃축제 사전예약 paused KRW 120000",
			target.CampaignDollars:                 "acc-us-01 Autumn Sale Search enabled USD 120.50",
			target.CampaignDollarsRetargeting:      "acc-us-01 Autumn Sale Search Retargeting enabled USD 80.00",
			target.CampaignDollarsPaused:           "acc-us-01 Cherry Blossom Preorders paused USD 45.00",
			target.PlainJPY(0):                     "acc-jp-02 北海道メロン予約販売 enabled JPY 10000",
			target.PlainKRW(target.PlainCount - 1): "acc-kr-02 여수밤바다 요트클럽 enabled KRW 100000",
		} {
			c, _ := s.Campaign(id)
			if got := fmt.Sprint(c.AccountID, " ", c.Name, " ", c.Status, " ", c.Currency, " ", c.DailyBudget); got != want {
				t.Errorf("seed %d, campaign %s: got %q, want %q", seed, id, got, want)
			}
		}
	}
}

// TestPlainCampaignsHaveNoLookAlike measures names as edits over length, after NFKC, against every other campaign.
func TestPlainCampaignsHaveNoLookAlike(t *testing.T) {
	t.Parallel()
	for seed := range int64(5) {
		s := start(t, func(cfg *target.AdsConfig) { cfg.Seed = seed })
		all := s.Campaigns()
		if len(all) < 40 {
			t.Errorf("got %d campaigns, want at least 40", len(all))
		}
		for i := range target.PlainCount {
			for _, id := range []string{target.PlainJPY(i), target.PlainKRW(i)} {
				plain, ok := s.Campaign(id)
				if !ok || plain.Status != target.StatusEnabled {
					t.Errorf("plain campaign %s: got %+v", id, plain)
				}
				for _, other := range all {
					if other.ID != id && similarity(plain.Name, other.Name) > 0.34 {
						t.Errorf("seed %d: %q is like %q", seed, plain.Name, other.Name)
					}
				}
			}
		}
	}
	if s := similarity("秋の特価_検索", "秋の特価_検索_再訪問"); s < 0.6 {
		t.Errorf("similarity of a look-alike pair: got %.2f, want over 0.6 (the measure sees nothing)", s)
	}
}

func similarity(a, b string) float64 {
	a, b = norm.NFKC.String(a), norm.NFKC.String(b)
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return 1 - float64(row[len(y)])/float64(max(utf8.RuneCountInString(a), utf8.RuneCountInString(b)))
}

func TestSearch(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, tc := range map[string]struct {
		query string
		want  []string
	}{
		"look-alikes":             {query("query", "秋の特価_検索"), []string{target.CampaignAutumnSearch, target.CampaignAutumnRetargeting}},
		"the longer name":         {query("query", "検索_再訪問"), []string{target.CampaignAutumnRetargeting}},
		"full width is half":      {query("query", "応援セール2026"), []string{target.CampaignNewLife, target.CampaignNewLifeWide}},
		"half width is full":      {query("query", "セール２０２６"), []string{target.CampaignNewLife, target.CampaignNewLifeWide}},
		"decomposed Hangul":       {query("query", norm.NFD.String("가을특가")), []string{target.CampaignKoreanAutumnSearch, target.CampaignKoreanAutumnRetargeting}},
		"any case":                {query("query", "autumn SALE"), []string{target.CampaignDollars, target.CampaignDollarsRetargeting}},
		"status":                  {query("query", "母の日", "status", "removed"), []string{target.CampaignMothersDayRemoved}},
		"a percent sign is text":  {query("query", "%"), nil},
		"an underscore is itself": {query("query", "秋_の"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := decode[page](t, s.get("/v1/campaigns"+tc.query))
			var ids []string
			for _, c := range p.Campaigns {
				ids = append(ids, c.ID)
			}
			if diff := cmp.Diff(tc.want, ids); diff != "" || p.Total != len(tc.want) || p.NextCursor != "" {
				t.Errorf("total %d, next %q, IDs (-want +got):\n%s", p.Total, p.NextCursor, diff)
			}
		})
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	want := s.Campaigns()
	for _, limit := range []int{1, 7, 100} {
		var all []target.Campaign
		for cursor := ""; ; {
			pairs := []string{"limit", fmt.Sprint(limit)}
			if cursor != "" {
				pairs = append(pairs, "cursor", cursor)
			}
			p := decode[page](t, s.get("/v1/campaigns"+query(pairs...)))
			all = append(all, p.Campaigns...)
			if cursor = p.NextCursor; cursor == "" || len(all) > len(want) {
				break
			}
		}
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
	first := decode[page](t, s.get("/v1/campaigns?limit=1"))
	for _, bad := range []string{
		query("cursor", first.NextCursor, "status", "paused"), query("cursor", "%%%"), query("cursor", "AAAA"),
		query("limit", "0"), query("limit", "101"), query("limit", "x"), query("status", "live"), query("name", "x"),
		"?query=a&query=b", "?query=%zz", "?query=a;b",
	} {
		s.get("/v1/campaigns"+bad).want(t, 400, "invalid_parameter")
	}
}

func TestChange(t *testing.T) {
	t.Parallel()
	s := start(t)
	read := s.get("/v1/campaigns/" + target.CampaignDollars)
	read.want(t, 200, `"daily_budget":"120.50"`)
	tag := read.header.Get("ETag")
	if c := decode[target.Campaign](t, read); c.ETag != tag || tag == "" {
		t.Errorf("ETag: got header %q and body %q, want the same", tag, c.ETag)
	}
	done := s.set(target.CampaignDollars, "150.00", "USD", "k", "If-Match", tag,
		"X-On-Behalf-Of", target.UserSato, "X-Approved-By", target.UserKim, "X-Agent", "claude")
	done.want(t, 200, `"change_id":"chg-000001"`)
	if next := done.header.Get("ETag"); next == tag || !strings.Contains(done.body, strings.ReplaceAll(next, `"`, `\"`)) {
		t.Errorf("ETag: got %q after %q in %s, want a new one", next, tag, done.body)
	}
	s.set(target.CampaignDollars, "160.00", "USD", "k2", "If-Match", tag).want(t, 412, "etag_mismatch")
	s.set(target.CampaignDollars, "160.00", "USD", "k3", "If-Match", "*").want(t, 200, "")

	want := target.Change{
		ChangeID: "chg-000001", CampaignID: target.CampaignDollars, Before: "120.50", After: "150.00", Currency: "USD",
		ETag: done.header.Get("ETag"), Key: "k", OnBehalfOf: target.UserSato, ApprovedBy: target.UserKim, Agent: "claude", Source: target.SourceAPI,
	}
	looked := decode[struct{ Changes []target.Change }](t, s.get("/v1/changes?key=k")).Changes
	logged := decode[struct{ Entries []target.Change }](t, s.get("/v1/log")).Entries
	if len(looked) != 1 || len(logged) != 2 {
		t.Fatalf("got %d changes and %d entries, want 1 and 2", len(looked), len(logged))
	}
	for _, got := range []target.Change{looked[0], logged[0]} {
		want.Time = got.Time
		if diff := cmp.Diff(want, got); diff != "" || got.Time.IsZero() {
			t.Errorf("at %v (-want +got):\n%s", got.Time, diff)
		}
	}
	s.get("/v1/log"+query("campaign", id)).want(t, 200, `{"entries":[]}`)
	s.get("/v1/log"+query("key", "k3")).want(t, 200, `"after":"160.00"`)
}

func TestRefusalsHaveNoEffect(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, tc := range map[string]struct {
		id, body, code string
		status         int
	}{
		"unknown campaign":  {"9999999", `{"daily_budget":"1","currency":"JPY"}`, "campaign_not_found", 404},
		"removed campaign":  {target.CampaignRemoved, `{"daily_budget":"1","currency":"JPY"}`, "campaign_removed", 422},
		"wrong currency":    {id, `{"daily_budget":"1","currency":"KRW"}`, "currency_mismatch", 422},
		"unknown currency":  {id, `{"daily_budget":"1","currency":"EUR"}`, "currency_mismatch", 422},
		"decimal yen":       {id, `{"daily_budget":"1.00","currency":"JPY"}`, "invalid_amount", 422},
		"one-decimal USD":   {target.CampaignDollars, `{"daily_budget":"1.5","currency":"USD"}`, "invalid_amount", 422},
		"integer USD":       {target.CampaignDollars, `{"daily_budget":"1","currency":"USD"}`, "invalid_amount", 422},
		"leading zero":      {id, `{"daily_budget":"01","currency":"JPY"}`, "invalid_amount", 422},
		"negative":          {id, `{"daily_budget":"-1","currency":"JPY"}`, "invalid_amount", 422},
		"relative":          {id, `{"daily_budget":"+10%","currency":"JPY"}`, "invalid_amount", 422},
		"exponent":          {id, `{"daily_budget":"1e9","currency":"JPY"}`, "invalid_amount", 422},
		"full-width digits": {id, `{"daily_budget":"１","currency":"JPY"}`, "invalid_amount", 422},
		"line feed":         {id, `{"daily_budget":"1\n","currency":"JPY"}`, "invalid_amount", 422},
		"too much":          {id, `{"daily_budget":"100000001","currency":"JPY"}`, "amount_out_of_range", 422},
		"far too much":      {id, `{"daily_budget":"9999999999999999999","currency":"JPY"}`, "invalid_amount", 422},
		"a number":          {id, `{"daily_budget":1,"currency":"JPY"}`, "invalid_body", 400},
		"missing":           {id, `{"daily_budget":"1"}`, "invalid_body", 400},
		"unknown member":    {id, `{"daily_budget":"1","currency":"JPY","name":"x"}`, "invalid_body", 400},
		"duplicate member":  {id, `{"daily_budget":"1","daily_budget":"2","currency":"JPY"}`, "invalid_body", 400},
		"other case":        {id, `{"Daily_Budget":"1","currency":"JPY"}`, "invalid_body", 400},
		"trailing":          {id, `{"daily_budget":"1","currency":"JPY"} {}`, "invalid_body", 400},
		"cut short":         {id, `{"daily_budget":"1","currency":"JPY"`, "invalid_body", 400},
		"not an object":     {id, `["1"]`, "invalid_body", 400},
		"huge":              {id, `{"daily_budget":"` + strings.Repeat("1", 1<<17) + `"}`, "too_large", 413},
	} {
		reply := s.send("PATCH", "/v1/campaigns/"+tc.id, tc.body)
		if reply.err != nil || reply.status != tc.status || !strings.Contains(reply.body, `{"error":{"code":"`+tc.code+`","message":"`) {
			t.Errorf("%s: got %d %s (error %v), want %d %s", name, reply.status, reply.body, reply.err, tc.status, tc.code)
		}
	}
	s.send("PATCH", "/v1/campaigns/"+id, "").want(t, 415, "unsupported_media_type")
	if n := s.Counters().Total; n.Effects != 0 || n.Received != 25 {
		t.Errorf("got %+v, want 25 received and no effect", n)
	}
}

func TestTheDoor(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, credential := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Basic " + token, token, "Bearer " + token + "x"} {
		for _, path := range []string{"/v1/campaigns", "/v1/log", "/_sim/counters", "/nowhere"} {
			reply := s.send("GET", path, "", "Authorization", credential)
			reply.want(t, 401, "unauthenticated")
			if reply.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%q at %s: got no challenge", credential, path)
			}
		}
	}
	s.send("GET", "/healthz", "", "Authorization", "").want(t, 200, "ok")
	s.get("/nowhere").want(t, 404, "not_found")
	s.send("DELETE", "/v1/campaigns/"+id, "").want(t, 404, "not_found")
	s.get("/v1/campaigns/9999999").want(t, 404, "campaign_not_found")
	s.send("GET", "/v1/campaigns", "", "Authorization", "bearer "+token).want(t, 200, "")

	shut := start(t, func(cfg *target.AdsConfig) { cfg.Token = "" })
	shut.send("GET", "/v1/campaigns", "", "Authorization", "Bearer ").want(t, 401, "unauthenticated")
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	s := start(t)
	ask := func(user, campaign, verb string) string {
		r := s.get("/v1/permissions" + query("user", user, "campaign", campaign, "verb", verb))
		r.want(t, http.StatusOK, "reason")
		a := decode[struct {
			Allowed bool
			Reason  string
		}](t, r)
		return fmt.Sprint(a.Allowed, " ", a.Reason)
	}
	want := map[string]string{}
	for _, user := range []string{target.UserSato, target.UserKim, target.UserTanaka} {
		want[user+" read"], want[user+" write"] = "true granted", "true granted"
	}
	want[target.UserGuest+" read"], want[target.UserGuest+" write"] = "true granted", "false not_granted"
	want["nobody@agency.example read"], want["nobody@agency.example write"] = "false unknown_user", "false unknown_user"
	got := maps.Clone(want)
	for question := range want {
		user, verb, _ := strings.Cut(question, " ")
		got[question] = ask(user, id, verb)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	s.SetPermission(target.Permission{User: target.UserSato, Verb: "write", Resource: id})
	s.SetPermission(target.Permission{User: target.UserGuest, Verb: "write", Resource: id, Allowed: true})
	for question, want := range map[[3]string]string{
		{target.UserSato, id, "write"}:                               "false withdrawn",
		{target.UserSato, id, "read"}:                                "true granted",
		{target.UserSato, target.CampaignAutumnRetargeting, "write"}: "true granted",
		{target.UserGuest, id, "write"}:                              "true granted",
		{target.UserSato, "9999999", "write"}:                        "false unknown_campaign",
	} {
		if got := ask(question[0], question[1], question[2]); got != want {
			t.Errorf("%v: got %q, want %q", question, got, want)
		}
	}
	for _, bad := range []string{"", query("user", "u", "campaign", id), query("user", "u", "verb", "write"), query("user", "u", "campaign", id, "verb", "own")} {
		s.get("/v1/permissions"+bad).want(t, 400, "invalid_parameter")
	}
}

func TestConsole(t *testing.T) {
	t.Parallel()
	s := start(t)
	before, _ := s.Campaign(id)
	if err := s.SetBudget(id, "25000"); err != nil {
		t.Fatal(err)
	}
	s.set(id, "30000", "JPY", "k", "If-Match", before.ETag).want(t, 412, "etag_mismatch")
	s.get("/v1/log").want(t, 200, `"source":"console"`)
	s.wantTally(t, "k", 1, 0)
	if n := s.Counters().Total.Effects; n != 0 {
		t.Errorf("got %d effects counted for the console, want 0", n)
	}
	for name, edit := range map[string]target.CampaignEdit{
		"nothing": {}, "a bad budget": {DailyBudget: "1.5"}, "a bad status": {Status: "gone"},
	} {
		if _, err := s.Edit(id, edit); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if err := s.SetBudget("9999999", "1"); err == nil {
		t.Error("an unknown campaign: got no error")
	}
	added := target.Campaign{ID: "2009001", AccountID: "acc-jp-09", Name: "追加", Status: target.StatusEnabled, Owner: target.UserKim, Currency: "JPY", DailyBudget: "7"}
	if err := s.Add(added); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(added); err == nil {
		t.Error("adding a campaign twice: got no error")
	}
	s.set("2009001", "8", "JPY", "").want(t, 200, "追加")
	s.Reset()
	s.get("/v1/campaigns/2009001").want(t, 404, "")
	s.wantBudget(t, id, "20000")
}
