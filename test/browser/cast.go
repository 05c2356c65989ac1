package main

import "fmt"

// person is somebody of the cast, or the agent that asks for one.
type person struct {
	id, subject, name, locale string
	agent                     bool
	groups, roles             []string
	scopes                    string
}

const (
	reads      = "ads:read deploy:read"
	writesAds  = "ads:read ads:budget"
	writesBoth = "ads:read ads:budget deploy:read deploy:rollback"
)

// cast are the people that the platforms know as well. Their languages are their own; a check may ask for another.
var cast = []person{
	{id: "agent", subject: "sato@agency.example", name: "佐藤 美咲", locale: "ja", agent: true, roles: []string{"requester"}, scopes: writesAds},
	{id: "sato", subject: "sato@agency.example", name: "佐藤 美咲", locale: "ja", roles: []string{"requester"}, scopes: writesAds},
	{id: "kim", subject: "kim@agency.example", name: "Minjun Kim", locale: "en", groups: []string{"ads-approvers"}, roles: []string{"approver"}, scopes: reads},
	{id: "tanaka", subject: "tanaka@agency.example", name: "田中 健", locale: "ja", groups: []string{"ads-approvers"}, roles: []string{"approver"}, scopes: reads},
	// boss is tanaka with the right to ask and to apply: only having asked keeps them from deciding.
	{id: "boss", subject: "tanaka@agency.example", name: "田中 健", locale: "en", groups: []string{"ads-approvers"}, roles: []string{"approver", "requester"}, scopes: writesAds},
	{id: "mori-agent", subject: "mori@platform.example", name: "森 拓也", locale: "ja", agent: true, roles: []string{"requester"}, scopes: writesBoth},
	{id: "hayashi", subject: "hayashi@platform.example", name: "林 由紀", locale: "ja", groups: []string{"release-managers"}, roles: []string{"approver"}, scopes: reads},
	{id: "nguyen", subject: "nguyen@platform.example", name: "Linh Nguyen", locale: "en", groups: []string{"release-managers"}, roles: []string{"approver"}, scopes: reads},
	{id: "oper", subject: "oper@agency.example", name: "Olive Park", locale: "en", roles: []string{"operator"}, scopes: reads},
	{id: "auditor", subject: "auditor@agency.example", name: "Audrey Mori", locale: "en", roles: []string{"auditor"}, scopes: reads},
	{id: "admin", subject: "admin@agency.example", name: "Adam Lee", locale: "en", roles: []string{"admin"}, scopes: reads},
}

func personOf(id string) (person, error) {
	for _, one := range cast {
		if one.id == id {
			return one, nil
		}
	}
	return person{}, fmt.Errorf("nobody is called %q", id)
}

func (p person) claims(tenant string) claims {
	c := claims{"sub": p.subject, "name": p.name, "locale": p.locale, "tenant": tenant, "roles": p.roles}
	if len(p.groups) > 0 {
		c["groups"] = p.groups
	}
	return c
}
