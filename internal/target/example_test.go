package target_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/cutonce/cutonce/internal/target"
)

// A reply is lost after its effect: the caller knows nothing, the platform's counters and change history do.
func Example() {
	ads := target.NewAds(target.AdsConfig{PlatformConfig: target.PlatformConfig{Token: "secret"}, Seed: 1})
	server := httptest.NewServer(ads)
	defer server.Close()
	if err := ads.AddFault(target.Once(target.OpChange, target.CampaignAutumnSearch, target.Step{Action: target.DropAfter})); err != nil {
		fmt.Println(err)
	}

	req, _ := http.NewRequest("PATCH", server.URL+"/v1/campaigns/"+target.CampaignAutumnSearch,
		strings.NewReader(`{"daily_budget":"30000","currency":"JPY"}`))
	req.Header.Set("Authorization", "Bearer secret")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "key-1")
	req.Header.Set("X-On-Behalf-Of", target.UserSato)
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	fmt.Println("lost:", err != nil)
	fmt.Printf("%+v\n", ads.CountersFor("key-1"))
	for _, e := range ads.Entries() {
		fmt.Println(e.ChangeID, e.Before, "to", e.After, "for", e.OnBehalfOf)
	}
	// Output:
	// lost: true
	// {Received:1 Effects:1}
	// chg-000001 20000 to 30000 for sato@agency.example
}
