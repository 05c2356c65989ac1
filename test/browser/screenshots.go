package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/page"

	"github.com/cutonce/cutonce/internal/target"
)

// photograph takes a picture of every screen in both languages, light and dark, wide and on a phone: the whole page, and on a phone what
// is seen of it first.
func (s *stage) photograph(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var screens []screen
	if problem := s.play(ctx, func(w *scene) { screens = w.posed() }); problem != "" {
		return fmt.Errorf("preparing the screens: %s", problem)
	}
	for _, p := range poses() {
		if problem := s.play(ctx, func(w *scene) { w.shoot(dir, p, screens) }); problem != "" {
			return fmt.Errorf("%s: %s", p.name, problem)
		}
		fmt.Printf("%s: %d screens\n", p.name, len(screens))
	}
	return nil
}

type pose struct {
	name  string
	phone bool
	looks []look
}

func poses() (list []pose) {
	for _, lang := range []struct {
		name string
		look look
	}{{"en", inEnglish}, {"ja", inJapanese}} {
		for _, colour := range []struct {
			name  string
			looks []look
		}{{"light", nil}, {"dark", []look{dark}}} {
			looks := append([]look{lang.look, zone("Asia/Tokyo")}, colour.looks...)
			list = append(list,
				pose{lang.name + "-" + colour.name + "-wide", false, append(looks[:len(looks):len(looks)], sized(1280, 900))},
				pose{lang.name + "-" + colour.name + "-phone", true, append(looks[:len(looks):len(looks)], phone)})
		}
	}
	return list
}

func (w *scene) shoot(dir string, p pose, screens []screen) {
	tabs := map[string]*tab{}
	for _, one := range screens {
		w.tenant = one.tenant
		who := one.tenant + "/" + one.who
		t := tabs[who]
		if t == nil {
			t = w.as(one.who, p.looks...)
			t.watch.expect(`.`) // pictures check nothing
			t.touch = false     // a finger leaves its trace in a picture
			tabs[who] = t
		}
		t.open(one.path)
		if one.opens != "" {
			t.press(one.opens)
		}
		t.settle()
		name := filepath.Join(dir, one.name+"-"+p.name)
		if one.opens == "" {
			w.must(os.WriteFile(name+".png", t.picture(true), 0o644))
		}
		if p.phone || one.opens != "" {
			w.must(os.WriteFile(name+"-first.png", t.picture(false), 0o644))
		}
	}
}

// picture is the whole page, or what the window shows of it.
func (t *tab) picture(whole bool) []byte {
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}
	if whole {
		size := eval[struct{ Width, Height float64 }](t, `({Width: document.documentElement.clientWidth, Height: document.documentElement.scrollHeight})`)
		params.CaptureBeyondViewport = yes
		params.Clip = &page.Viewport{Width: size.Width, Height: size.Height, Scale: 1}
	}
	got, err := callOf(t, page.CaptureScreenshot, params)
	t.w.must(err)
	return got.Data
}

// posed prepares screens that look as they do in an agency: names, reasons and amounts of one.
func (w *scene) posed() []screen {
	const home, quiet, frozen = "photos", "photos-quiet", "photos-frozen"
	w.tenant = home
	budget := func(id, field string, amount any, reason, justification string) change {
		found, err := w.f.Ads.Campaign(w.ctx, id)
		w.must(err)
		r, err := w.api("agent").Do(w.ctx, http.MethodPost, "/v1/actions/budget_change/previews", map[string]any{
			"campaign_id": id, field: amount, "expect_campaign_name": found.Name, "reason": reason,
		})
		w.must(err)
		if r.PreviewID == "" {
			w.fail("preparing: %s", r.Message)
		}
		c := change{id: r.PreviewID, campaign: id, name: found.Name}
		s, err := w.api("agent").Status(w.ctx, c.id, 0)
		w.must(err)
		c.digest = s.Change.Digest
		if justification == "" {
			return c
		}
		return w.asksSaying("agent", c, justification)
	}
	plain := budget(target.CampaignNewLife, "new_daily_budget_jpy", 90000, "新生活セールの初日に予算が昼で尽きるため。", "先週の実績では13時に予算を使い切りました。")
	dollars := budget(target.CampaignDollars, "new_daily_budget_usd", 300, "The autumn sale starts on Friday.", "Impressions were lost to budget on three of the last five days.")
	two := budget(target.PlainJPY(1), "new_daily_budget_jpy", 50000, "紅葉の見頃に合わせて露出を増やすため。", "見頃は今週末までです。")
	careful := budget(target.PlainKRW(3), "new_daily_budget_krw", 900000, "구독 이벤트 기간 동안 예산을 늘립니다.", "이벤트는 일요일에 끝납니다.")
	w.decides("tanaka", two, "approve")
	done := budget(target.PlainJPY(2), "new_daily_budget_jpy", 24000, "ダイビング体験の予約が伸びているため。", "空き枠はあと 40 件です。")
	w.decides("kim", done, "approve")
	w.applies(done, "applied")
	ready := budget(target.PlainJPY(3), "new_daily_budget_jpy", 22000, "お歳暮の時期に合わせるため。", "昨年と同じ水準です。")
	w.decides("kim", ready, "approve")
	turned := budget(target.PlainJPY(4), "new_daily_budget_jpy", 25000, "教室の空きを埋めるため。", "平日のみです。")
	w.rejects("kim", turned)
	w.must(w.f.Ads.AddFault(w.ctx,
		target.Once(target.OpChange, target.PlainJPY(5), target.Step{Action: target.DropAfter}),
		target.Fault{Match: target.Match{Op: target.OpLookup, Resource: target.PlainJPY(5)}, Times: target.Forever, Do: []target.Step{{Action: target.LookupUnavailable}}},
	))
	unknown := budget(target.PlainJPY(5), "new_daily_budget_jpy", 12000, "職人展の会期が延びたため。", "")
	w.applies(unknown, "unknown")
	odd, _ := w.odd()
	w.tenant = frozen
	w.freezes("A campaign's budgets were raised twice last night; we are looking into it.")
	w.pending(large)
	return []screen{
		{name: "queue", tenant: home, who: "kim", path: "/"},
		{name: "queue-keys", tenant: home, who: "kim", path: "/", opens: "#keys-open"},
		{name: "queue-empty", tenant: quiet, who: "kim", path: "/"},
		{name: "queue-frozen", tenant: frozen, who: "kim", path: "/"},
		{name: "review", tenant: home, who: "kim", path: plain.review()},
		{name: "review-dollars", tenant: home, who: "kim", path: dollars.review()},
		{name: "review-approve", tenant: home, who: "kim", path: dollars.review(), opens: "[data-open=approve]"},
		{name: "review-two", tenant: home, who: "kim", path: two.review()},
		{name: "review-high", tenant: home, who: "kim", path: careful.review()},
		{name: "review-high-approve", tenant: home, who: "kim", path: careful.review(), opens: "[data-open=approve]"},
		{name: "review-odd", tenant: home, who: "nguyen", path: odd.review()},
		{name: "bulk", tenant: home, who: "kim", path: "/bulk?action=budget_change"},
		{name: "bulk-chosen", tenant: home, who: "kim", path: "/bulk?action=budget_change&item=" + plain.id + "&item=" + dollars.id},
		{name: "change-waiting", tenant: home, who: "sato", path: plain.whole()},
		{name: "change-ready", tenant: home, who: "sato", path: ready.whole()},
		{name: "change-applied", tenant: home, who: "auditor", path: done.whole()},
		{name: "change-rejected", tenant: home, who: "auditor", path: turned.whole()},
		{name: "outcomes", tenant: home, who: "oper", path: "/outcomes"},
		{name: "change-unknown", tenant: home, who: "oper", path: unknown.whole()},
		{name: "history", tenant: home, who: "auditor", path: "/history"},
		{name: "freeze", tenant: frozen, who: "admin", path: "/freeze"},
		{name: "nowhere", tenant: home, who: "kim", path: "/nowhere"},
	}
}

// freezes has an admin freeze everything of the scene's tenant.
func (w *scene) freezes(reason string) {
	r, err := w.api("admin").Do(w.ctx, http.MethodPost, "/v1/freezes", map[string]any{"kind": "tenant", "reason": reason, "for_s": 7200})
	w.must(err)
	want(w, "freezing ("+r.Message+")", r.HTTP, http.StatusOK)
}
