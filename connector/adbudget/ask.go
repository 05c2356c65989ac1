package adbudget

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
)

// ask is what the caller wants, as far as it can be judged without the platform.
type ask struct {
	campaignID string
	field      string
	budget     money.Amount
	// expectName is the campaign's name as the caller knows it; expects says whether one was given.
	expectName string
	expects    bool
}

const (
	mostID     = 20
	mostName   = 300
	mostReason = 500
)

// readAsk checks the input whole and lists every wrong place. The schema has checked most of it before; this is the rule
// that holds without it.
func readAsk(in connector.Input) (ask, error) {
	var bad complaints
	a := ask{campaignID: in.Text("campaign_id")}
	if !isID(a.campaignID) {
		bad.input("/campaign_id", "adbudget.field.campaign_id", nil)
	}
	a.readBudget(in, &bad)
	if raw, given := in["expect_campaign_name"]; given {
		a.expectName, a.expects = raw.(string)
		if n := utf8.RuneCountInString(a.expectName); n < 1 || n > mostName {
			bad.input("/expect_campaign_name", "adbudget.field.expect_name", fault.Args{"most": mostName})
		}
	}
	reason := in.Text("reason")
	if strings.TrimSpace(reason) == "" || utf8.RuneCountInString(reason) > mostReason {
		bad.input("/reason", "adbudget.field.reason", fault.Args{"most": mostReason})
	}
	return a, bad.fault()
}

func isID(s string) bool {
	digit := func(r rune) bool { return r >= '0' && r <= '9' }
	return s != "" && len(s) <= mostID && strings.TrimFunc(s, digit) == ""
}

// readBudget wants exactly one of the three fields.
func (a *ask) readBudget(in connector.Input, bad *complaints) {
	var given []budgetField
	for _, f := range budgetFields {
		if _, ok := in[f.name]; ok {
			given = append(given, f)
		}
	}
	switch len(given) {
	case 0:
		bad.input("", "adbudget.field.no_budget", nil)
	case 1:
		a.field = given[0].name
		a.budget = given[0].read(in[a.field], bad)
	default:
		for _, f := range given {
			bad.input("/"+f.name, "adbudget.field.one_budget_only", nil)
		}
	}
}

// read takes a JSON number exactly as it is written.
func (f budgetField) read(raw any, bad *complaints) money.Amount {
	complain := func(key string, args fault.Args) money.Amount {
		bad.number("/"+f.name, key, args)
		return money.Amount{}
	}
	number, ok := raw.(json.Number)
	if !ok {
		return complain(notANumber(raw), fault.Args{"example": f.example})
	}
	plain, err := canon.Marshal(number)
	if err != nil {
		return complain("adbudget.field.unusable", fault.Args{"example": f.example})
	}
	amount, wrong, args := f.accept(string(plain))
	if wrong != "" {
		return complain(wrong, args)
	}
	return amount
}

// notANumber tells the two mistakes that agents make apart from all others.
func notANumber(raw any) string {
	text, ok := raw.(string)
	switch {
	case !ok:
		return "adbudget.field.not_a_number"
	case strings.ContainsAny(text, "%％+*×倍배") || strings.HasPrefix(text, "x"):
		return "adbudget.field.relative"
	}
	return "adbudget.field.number_in_quotes"
}

// complaints collects what is wrong with an input.
type complaints struct {
	fields []fault.Field
	// other says that something else than a number is wrong as well.
	other bool
}

func (c *complaints) input(path, key string, args fault.Args) {
	c.other = true
	c.fields = append(c.fields, fault.Field{Path: path, Key: key, Args: args})
}

func (c *complaints) number(path, key string, args fault.Args) {
	c.fields = append(c.fields, fault.Field{Path: path, Key: key, Args: args})
}

func (c *complaints) fault() error {
	if len(c.fields) == 0 {
		return nil
	}
	code := fault.InvalidNumber
	if c.other {
		code = fault.InvalidInput
	}
	f := fault.New(code, nil)
	f.Fields = c.fields
	return f
}
