package devissuer

import (
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The clients that tokens are issued to.
const (
	AgentClient   = "dev-agent"
	ConsoleClient = "dev-console"
)

// Person is somebody whom the issuer can speak for: a human, or an agent that acts for one.
type Person struct {
	// ID is what Token, SignInPath and CheckSignIn are called with.
	ID string
	// Subject is the sub claim: the human, also where an agent acts.
	Subject string
	// Agent says that the token is the development agent's, acting for Subject.
	Agent  bool
	Name   string
	Locale string
	Groups []string
	Roles  []string
	Scopes []string
}

// DefaultPeople are the cast of every development instance. The ad agency: an agent and the human it works for, two
// approvers. The platform team: agents of two people with unlike permissions, two release managers beside them. And one
// person for each other role.
func DefaultPeople() []Person {
	read, write := []string{"ads:read", "deploy:read"}, []string{"ads:read", "ads:budget"}
	rollback := []string{"deploy:read", "deploy:rollback"}
	return []Person{
		{ID: "agent", Subject: "sato@agency.example", Agent: true, Name: "佐藤 美咲", Locale: "ja", Roles: []string{"requester"}, Scopes: write},
		{ID: "sato", Subject: "sato@agency.example", Name: "佐藤 美咲", Locale: "ja", Roles: []string{"requester"}, Scopes: write},
		{ID: "kim", Subject: "kim@agency.example", Name: "김민준", Locale: "en", Groups: []string{"ads-approvers"}, Roles: []string{"approver"}, Scopes: read},
		{ID: "tanaka", Subject: "tanaka@agency.example", Name: "田中 健", Locale: "ja", Groups: []string{"ads-approvers"}, Roles: []string{"approver"}, Scopes: read},
		{ID: "mori-agent", Subject: "mori@platform.example", Agent: true, Name: "森 拓也", Locale: "ja", Roles: []string{"requester"}, Scopes: rollback},
		{ID: "ono-agent", Subject: "ono@platform.example", Agent: true, Name: "Ono Aki", Locale: "en", Roles: []string{"requester"}, Scopes: rollback},
		{ID: "mori", Subject: "mori@platform.example", Name: "森 拓也", Locale: "ja", Groups: []string{"release-managers"}, Roles: []string{"requester", "approver"}, Scopes: rollback},
		{ID: "hayashi", Subject: "hayashi@platform.example", Name: "林 由紀", Locale: "ja", Groups: []string{"release-managers"}, Roles: []string{"approver"}, Scopes: read},
		{ID: "nguyen", Subject: "nguyen@platform.example", Name: "Linh Nguyen", Locale: "en", Groups: []string{"release-managers"}, Roles: []string{"approver"}, Scopes: read},
		{ID: "oper", Subject: "oper@agency.example", Name: "Olive Park", Locale: "en", Roles: []string{"operator"}, Scopes: read},
		{ID: "auditor", Subject: "auditor@agency.example", Name: "Audrey Mori", Locale: "en", Roles: []string{"auditor"}, Scopes: read},
		{ID: "admin", Subject: "admin@agency.example", Name: "Adam Lee", Locale: "en", Roles: []string{"admin"}, Scopes: read},
	}
}

// claim writes who the person is. An agent's token names the human as its subject and itself in act (RFC 8693).
func (p Person) claim(c jwt.MapClaims, signedInAt time.Time) {
	c["sub"], c["name"], c["locale"] = p.Subject, p.Name, p.Locale
	c["scope"] = strings.Join(p.Scopes, " ")
	if len(p.Groups) > 0 {
		c["groups"] = p.Groups
	}
	if len(p.Roles) > 0 {
		c["roles"] = p.Roles
	}
	if p.Agent {
		c["client_id"], c["act"] = AgentClient, map[string]any{"sub": AgentClient}
		return
	}
	c["client_id"], c["auth_time"] = ConsoleClient, signedInAt.Unix()
}
