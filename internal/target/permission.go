package target

import "errors"

// errNoUser refuses a permission for nobody.
var errNoUser = errors.New("a permission has a user and a verb")

// Permission grants or withdraws one verb. An empty resource means every resource that has no permission of its
// own for that user and verb.
type Permission struct {
	User     string `json:"user"`
	Verb     string `json:"verb"`
	Resource string `json:"resource,omitempty"`
	Allowed  bool   `json:"allowed"`
}

type grant struct{ user, verb, resource string }

// permissionAnswer is the document of GET /v1/permissions.
type permissionAnswer struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
}

// SetPermission takes effect for the next question. A user becomes known by it.
func (p *Platform) SetPermission(change Permission) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setPermission(change)
}

func (p *Platform) setPermission(change Permission) {
	p.users[change.User] = true
	p.grants[grant{change.User, change.Verb, change.Resource}] = change.Allowed
}

// permits answers a question; the more particular permission wins, and silence is no. The caller holds mu.
func (p *Platform) permits(user, verb, resource string) permissionAnswer {
	if !p.users[user] {
		return permissionAnswer{Reason: "unknown_user"}
	}
	allowed, said := p.grants[grant{user, verb, resource}]
	if !said {
		allowed, said = p.grants[grant{user, verb, ""}]
	}
	switch {
	case !said:
		return permissionAnswer{Reason: "not_granted"}
	case !allowed:
		return permissionAnswer{Reason: "withdrawn"}
	}
	return permissionAnswer{Allowed: true, Reason: "granted"}
}
