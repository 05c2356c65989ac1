package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// calendar is a list of spans of days, both ends included.
type calendar []span

// span is from one day to another, as "2026-12-28": such texts sort as their days do.
type span struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`
}

// when is what rules about time need beside the moment: the policy's zone, and its named calendars.
type when struct {
	// zoneName is empty if no file declares a zone: rules then cannot speak of now.
	zoneName  string
	zone      *time.Location
	calendars map[string]calendar
}

// whenOf reads zone and calendars, each of which one file may declare.
func whenOf(sources []source) (w when, err error) {
	w.calendars = map[string]calendar{}
	for _, s := range sources {
		if s.Zone != "" && w.zoneName != "" {
			return w, fmt.Errorf("policy %s: the zone is already declared", s.name)
		}
		if s.Zone != "" {
			w.zoneName = s.Zone
			if w.zone, err = zoneOf(s.Zone); err != nil {
				return w, fmt.Errorf("policy %s: %w", s.name, err)
			}
		}
		for name, days := range s.Calendars {
			if _, twice := w.calendars[name]; twice {
				return w, fmt.Errorf("policy %s: there is a second calendar %s", s.name, name)
			}
			if err := days.check(name); err != nil {
				return w, fmt.Errorf("policy %s: %w", s.name, err)
			}
			w.calendars[name] = days
		}
	}
	return w, nil
}

// zoneOf accepts names of the IANA database only: "Local" would be another zone on each machine.
func zoneOf(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("zone: %q is no zone of the IANA database, such as Asia/Tokyo or UTC", name)
	}
	return zone, nil
}

func (c calendar) check(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("calendars: a name is lower-case letters, digits and hyphens, not %q", name)
	}
	if len(c) == 0 {
		return fmt.Errorf("calendars: %s has no days", name)
	}
	for _, s := range c {
		for _, day := range []string{s.From, s.To} {
			if _, err := time.Parse(time.DateOnly, day); err != nil {
				return fmt.Errorf("calendars: %s: %q is no day such as 2026-12-28", name, day)
			}
		}
		if s.To < s.From {
			return fmt.Errorf("calendars: %s: %s is before %s", name, s.To, s.From)
		}
	}
	return nil
}

func (c calendar) holds(day string) bool {
	return slices.ContainsFunc(c, func(s span) bool { return s.From <= day && day <= s.To })
}

// moment is the variable now: the database's time in the policy's zone.
type moment struct{ of *scope }

const momentName = "now"

var momentType = cel.ObjectType(momentName)

func (s *scope) localTime() (time.Time, error) {
	if s.facts.Now.IsZero() || s.policy == nil || s.policy.when.zone == nil {
		return time.Time{}, missing{momentName}
	}
	return s.facts.Now.In(s.policy.when.zone), nil
}

const clock = "15:04"

// moments are the fields of now.
func moments(name string) *types.FieldType {
	read := func(kind *types.Type, get func(time.Time) any) *types.FieldType {
		return field(kind, func(s *scope) (any, error) {
			now, err := s.localTime()
			if err != nil {
				return nil, err
			}
			return get(now), nil
		})
	}
	switch name {
	case "weekday":
		return read(types.StringType, func(t time.Time) any { return strings.ToLower(t.Weekday().String()) })
	case "date":
		return read(types.StringType, func(t time.Time) any { return t.Format(time.DateOnly) })
	case "time":
		return read(types.StringType, func(t time.Time) any { return t.Format(clock) })
	case "hour":
		return read(types.IntType, func(t time.Time) any { return int64(t.Hour()) })
	}
	return nil
}

// timeFunctions declare now.within("22:00", "06:00") and now.during("year-end").
func timeFunctions() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Function("within", cel.MemberOverload("now_within", []*cel.Type{momentType, cel.StringType, cel.StringType}, cel.BoolType,
			cel.FunctionBinding(func(args ...ref.Val) ref.Val { return within(args[0], args[1], args[2]) }))),
		cel.Function("during", cel.MemberOverload("now_during", []*cel.Type{momentType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(during))),
	}
}

// within reports whether the time of day is from the first on and before the second. A span that ends before it begins goes over
// midnight.
func within(at, from, to ref.Val) ref.Val {
	now, err := at.(moment).of.localTime()
	if err != nil {
		return types.WrapErr(err)
	}
	said, begin, end := now.Format(clock), fmt.Sprint(from.Value()), fmt.Sprint(to.Value())
	if begin <= end {
		return types.Bool(begin <= said && said < end)
	}
	return types.Bool(said >= begin || said < end)
}

func during(at, name ref.Val) ref.Val {
	s := at.(moment).of
	now, err := s.localTime()
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(s.policy.when.calendars[fmt.Sprint(name.Value())].holds(now.Format(time.DateOnly)))
}

// ConvertToNative implements ref.Val.
func (m moment) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("now has no other form")
}

// ConvertToType implements ref.Val.
func (m moment) ConvertToType(ref.Type) ref.Val { return types.NewErr("now has no other form") }

// Equal implements ref.Val.
func (m moment) Equal(ref.Val) ref.Val { return types.NewErr("name a field of now") }

// Type implements ref.Val.
func (m moment) Type() ref.Type { return momentType }

// Value implements ref.Val: what the getters of its fields are given.
func (m moment) Value() any { return m.of }

var hourAndMinute = func(text string) bool {
	_, err := time.Parse(clock, text)
	return err == nil && len(text) == len(clock)
}
