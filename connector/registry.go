package connector

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// Registry is the set of connectors of one service, fixed at start.
type Registry struct {
	actions map[string]Registered
	finds   map[string]Finder
	texts   []fs.FS
}

// Registered is an action with the connector that performs it.
type Registered struct {
	Action
	Connector Connector
	System    string
	Able      Capabilities
}

// Finder is a find tool with its connector.
type Finder struct {
	Find
	Connector Connector
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// reserved are the tools that all actions share; an action or find of that name would shadow them.
var reserved = []string{"approval_request", "change_status", "change_cancel", "changes_find"}

// NewRegistry checks names and schemas for collisions. It does not call any target.
func NewRegistry(connectors ...Connector) (*Registry, error) {
	r := &Registry{actions: map[string]Registered{}, finds: map[string]Finder{}}
	for _, c := range connectors {
		if err := r.add(c, c.Describe()); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Registry) add(c Connector, d Description) error {
	if d.System == "" {
		return fmt.Errorf("a connector describes no system")
	}
	if d.Texts != nil {
		r.texts = append(r.texts, d.Texts)
	}
	for _, a := range d.Actions {
		if err := r.claimName(a.Name); err != nil {
			return err
		}
		if a.Version < 1 || len(a.Scopes) == 0 || len(a.Input) == 0 {
			return fmt.Errorf("action %s needs a version, scopes and an input schema", a.Name)
		}
		if a.ResolveBy < 0 || a.ResolveBy > 2 {
			return fmt.Errorf("action %s: an unknown outcome is settled by one operator or two, not by %d", a.Name, a.ResolveBy)
		}
		r.actions[a.Name] = Registered{Action: a, Connector: c, System: d.System, Able: d.Able}
	}
	for _, f := range d.Finds {
		if err := r.claimName(f.Name); err != nil {
			return err
		}
		r.finds[f.Name] = Finder{Find: f, Connector: c}
	}
	return nil
}

func (r *Registry) claimName(name string) error {
	_, action := r.actions[name]
	_, find := r.finds[name]
	switch {
	case !toolName.MatchString(name):
		return fmt.Errorf("%q is no name for a tool: lower-case letters, digits and _", name)
	case action || find || slices.Contains(reserved, name):
		return fmt.Errorf("two tools are called %s", name)
	}
	return nil
}

// Action returns an action by name.
func (r *Registry) Action(name string) (Registered, bool) {
	a, ok := r.actions[name]
	return a, ok
}

// Actions returns all actions, sorted by name.
func (r *Registry) Actions() []Registered {
	out := make([]Registered, 0, len(r.actions))
	for _, a := range r.actions {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Registered) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Find returns a find tool by name.
func (r *Registry) Find(name string) (Finder, bool) {
	f, ok := r.finds[name]
	return f, ok
}

// Finds returns all find tools, sorted by name.
func (r *Registry) Finds() []Finder {
	out := make([]Finder, 0, len(r.finds))
	for _, f := range r.finds {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Finder) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Texts are the connectors' own catalogues.
func (r *Registry) Texts() []fs.FS { return r.texts }
