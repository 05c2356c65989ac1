package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cutonce/cutonce/internal/money"
)

// totalText is what a case says of a cap: {applied: KRW 900000, pending: KRW 200000}. What it leaves out is nothing, but for the limit,
// which is then the policy's.
type totalText struct {
	Limit    *valueText `yaml:"limit"`
	Applied  *valueText `yaml:"applied"`
	Reserved *valueText `yaml:"reserved"`
	Unknown  *valueText `yaml:"unknown"`
	Pending  *valueText `yaml:"pending"`
}

func exposureOf(written map[string]totalText) ([]Exposure, error) {
	var all []Exposure
	for _, name := range slices.Sorted(maps.Keys(written)) {
		e, err := written[name].exposure(name)
		if err != nil {
			return nil, fmt.Errorf("exposure: %s: %w", name, err)
		}
		all = append(all, e)
	}
	return all, nil
}

func (t totalText) exposure(name string) (Exposure, error) {
	e := Exposure{Cap: name}
	var currency money.Currency
	for _, one := range []struct {
		what string
		said *valueText
		into *money.Amount
	}{{"limit", t.Limit, &e.Limit}, {"applied", t.Applied, &e.Applied}, {"reserved", t.Reserved, &e.Reserved}, {"unknown", t.Unknown, &e.Unknown}, {"pending", t.Pending, &e.Pending}} {
		switch {
		case one.said == nil:
			continue
		case one.said.amount == nil:
			return e, fmt.Errorf("%s is an amount such as KRW 900000", one.what)
		case currency != "" && one.said.amount.Currency != currency:
			return e, fmt.Errorf("%s is in %s and another total in %s", one.what, one.said.amount.Currency, currency)
		}
		*one.into, currency = *one.said.amount, one.said.amount.Currency
	}
	if currency == "" {
		return e, fmt.Errorf("say at least one of limit, applied, reserved, unknown and pending")
	}
	for _, total := range []*money.Amount{&e.Applied, &e.Reserved, &e.Unknown, &e.Pending} {
		total.Currency = currency
	}
	return e, nil
}

// complete gives the totals of a case what the policy and the change say of them: the limit, and what the change asks for.
func (p *Policy) complete(f Facts) (Facts, error) {
	counted := p.Counted(f)
	f.Exposure = slices.Clone(f.Exposure)
	for i := range f.Exposure {
		e := &f.Exposure[i]
		at := slices.IndexFunc(counted, func(c Charge) bool { return c.Cap == e.Cap && c.Currency == e.Applied.Currency })
		if at < 0 {
			return f, fmt.Errorf("exposure: no cap %s counts this change in %s", e.Cap, e.Applied.Currency)
		}
		c := counted[at]
		e.Per, e.Window, e.Asked = c.Per, c.Window, money.Amount{Minor: c.Minor, Currency: c.Currency}
		if e.Limit.Currency == "" && c.Limit != nil {
			e.Limit = money.Amount{Minor: *c.Limit, Currency: c.Currency}
		}
	}
	return f, nil
}
