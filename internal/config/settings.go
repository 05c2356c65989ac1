// Package config reads what a process is told by its environment.
//
// It promises that every variable is named CUTONCE_…, that an unknown or unreadable one refuses the start and is named, all
// problems at once, and that what it prints of itself holds no secret. It decides nothing else: wiring turns Settings into
// the parts of the service. Start at Load; the fields of Settings are the documentation (see Table).
package config

import (
	"log/slog"
	"time"
)

// Prefix begins the name of every variable.
const Prefix = "CUTONCE_"

// Secret is a value that is never printed.
type Secret string

// String hides the value, but tells whether there is one.
func (s Secret) String() string {
	if s == "" {
		return "not set"
	}
	return "set"
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the value from JSON and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Settings is all that a process can be told. The tags are the documentation: docs/configuration.md is rendered from them.
type Settings struct {
	DatabaseURL     Secret `env:"DATABASE_URL" doc:"Postgres, as postgres://user:password@host:port/database. Directly or through a pooler, of sessions or of transactions; the database must be cutonce's own. Required by serve and migrate, or its _FILE. The plain DATABASE_URL is never read."`
	DatabaseURLFile string `env:"DATABASE_URL_FILE" doc:"A file that holds the URL instead."`
	DatabasePool    int    `env:"DATABASE_POOL" default:"16" doc:"The most connections of one process; two more are kept for recording outcomes."`
	DatabasePooler  string `env:"DATABASE_POOLER" default:"auto" doc:"What stands between this process and Postgres: none; transaction, a pooler that hands every transaction to another session, so that no statement stays prepared (each is planned anew, which costs Postgres more); auto takes whatever stands between for such a one. Say none for a session pooler, and for PgBouncer from 1.21 on with max_prepared_statements."`
	DirectURL       Secret `env:"DATABASE_DIRECT_URL" doc:"Where DATABASE_URL is a transaction pooler's: the server itself, for what no such pooler carries, which is bringing the schema up to date and the queue of deliveries."`
	DirectURLFile   string `env:"DATABASE_DIRECT_URL_FILE" doc:"A file that holds that URL instead."`
	Migrate         bool   `env:"MIGRATE" default:"true" doc:"Bring the schema up to date at start (replicas may do it at the same time). Set it to false to run cutonce migrate yourself, with another role; serve then refuses a schema that is behind."`
	AllowUnsafe     string `env:"ALLOW_UNSAFE_DATABASE" doc:"A database that may forget an acknowledged commit (fsync, full_page_writes or synchronous_commit off) is refused, unless this is the word development."`

	Listen        string        `env:"LISTEN" default:"127.0.0.1:8780" doc:"Where /mcp, /v1 and the console are served. Plain HTTP: put TLS in front of it."`
	MetricsListen string        `env:"METRICS_LISTEN" default:"127.0.0.1:8781" doc:"Where /metrics is served, for Prometheus; off serves none. Never expose it."`
	Profile       bool          `env:"METRICS_PROFILE" default:"false" doc:"Serve Go's profiles (/debug/pprof/) beside /metrics, for measuring. The metrics listener must be on loopback: profiles tell what the process is doing."`
	PublicURL     string        `env:"PUBLIC_URL" doc:"The address by which people and agents reach the service, such as https://cutonce.example. Plain http on loopback only. Required by serve."`
	DrainFor      time.Duration `env:"DRAIN" default:"25s" doc:"How long a stop waits for requests and sends under way. What is cut off reads as unknown and is settled by evidence. Keep it longer than CUTONCE_CLOCK_SEND and shorter than what your supervisor allows."`
	LogLevel      slog.Level    `env:"LOG_LEVEL" default:"INFO" doc:"DEBUG, INFO, WARN or ERROR. Logs are JSON lines on stderr."`

	Secret          Secret `env:"SECRET" doc:"The deployment's secret, 32 bytes or more (openssl rand -hex 32), the same on every replica. Idempotency keys are made from it, and the database knows which one: a process with another is refused. Required by serve, or its _FILE."`
	SecretFile      string `env:"SECRET_FILE" doc:"A file that holds the secret instead."`
	SecretReplace   bool   `env:"SECRET_REPLACE" default:"false" doc:"Take another secret than the one that this database's changes were sent under. It is refused while anything waits for a look-up by its key. Set it for one start, and not for good."`
	PolicyDir       string `env:"POLICY_DIR" doc:"A folder of policy files (*.yaml). Required by serve; cutonce dev brings an example."`
	PolicyReinstate bool   `env:"POLICY_REINSTATE" default:"false" doc:"Put a policy back in force that another has superseded. Without it serve refuses to start with one, so that a replica that comes back with old files does not loosen the rules."`

	SealKeyFile string `env:"SEAL_KEY_FILE" doc:"A file with the Ed25519 private key that audit seals are signed with, the same on every replica (openssl genpkey -algorithm ed25519). Without it the key is made from the deployment's secret: whoever holds that secret can then sign seals."`
	SealWitness string `env:"SEAL_WITNESS" doc:"A file outside the database's own machine and backups that holds the last durable seal. A database that does not know it, at start or at any pass, was restored from a backup: applies are frozen until an operator has looked. One file per replica, or a shared one."`

	NotifyFile string `env:"NOTIFY_FILE" doc:"A YAML file that says who is told of what, by webhook, Slack or mail. Without it nobody is. Secrets are not in it: it names the environment variables that hold them. See docs/notifications.md."`

	Retention time.Duration `env:"RETENTION" doc:"How long a change stays on record after the last thing that happened to it, such as 8760h for a year; at least 720h. Then its record is removed but for a tombstone: its ID is unknown and its idempotency key is refused, for ever. Default: changes are kept for ever. See docs/retention.md."`

	ConsoleZones []string `env:"CONSOLE_ZONES" doc:"Time zones that the console shows times in, such as Asia/Tokyo,Asia/Seoul: the first is what everybody gets who has not chosen another, and UTC can always be chosen. Times always bear their zone's name. Default: UTC. A browser that runs scripts shows its own zone where nobody chose."`

	MCPOrigins []string `env:"MCP_ALLOWED_ORIGINS" doc:"Origins such as https://app.example from which browsers may call /mcp, separated by commas. Clients that are no browsers need none."`
	MCPListing string   `env:"MCP_LISTING" default:"grantable" doc:"Which tools an agent is shown: grantable (what a step-up could reach) or granted (what its token allows now). The check at every call is the same."`

	Audiences []string `env:"AUDIENCES" doc:"Which audiences a token may name, separated by commas. Default: the public URL, and the same with /mcp."`
	Issuer    Issuer   `prefix:"ISSUER_" doc:"the identity provider whose tokens are accepted"`
	Issuer2   Issuer   `prefix:"ISSUER2_" doc:"a second identity provider"`
	Issuer3   Issuer   `prefix:"ISSUER3_" doc:"a third identity provider"`

	SignIn SignIn `prefix:"SIGNIN_" doc:"how people sign in to the console"`

	Ads     Target `prefix:"ADS_" doc:"the ad platform, whose budgets are changed"`
	Deploys Target `prefix:"DEPLOYS_" doc:"the deployment platform, whose deployments are rolled back"`
	Clock   Clock  `prefix:"CLOCK_" doc:"clocks"`
	Limit   Limit  `prefix:"LIMIT_" doc:"limits"`
}

// Limit is how much callers may ask for. A read costs 1 unit; asking for approval, applying and canceling 2; preparing and finding, which
// ask the platform, 5. Each process counts for itself.
type Limit struct {
	Actor  int `env:"ACTOR" default:"3000" doc:"How many units one caller may use in a minute, at once or spread: a read costs 1; asking for approval, applying and canceling 2; preparing and finding 5. 0 is without limit, else 10 or more. Each process counts for itself, over MCP and the JSON API."`
	Tenant int `env:"TENANT" default:"30000" doc:"The same for all agents and services of one tenant together. People count for themselves alone, and a freeze is never refused."`
	Action int `env:"ACTION" default:"1200" doc:"How many changes of one action may be prepared in a minute for one tenant. 0 is without limit, else 10 or more."`
	Open   int `env:"OPEN" default:"200" doc:"How many changes one requester may keep open (needs_approval, pending or approved). The database counts, over all processes; 0 is without limit."`
}

// Issuer is one identity provider.
type Issuer struct {
	URL          string   `env:"URL" doc:"The exact iss claim of its tokens. https, or http on loopback. One issuer is required by serve."`
	JWKSURL      string   `env:"JWKS_URL" doc:"Where its keys are; by default its metadata document tells."`
	AgentClients []string `env:"AGENT_CLIENTS" doc:"OAuth clients whose tokens are always an agent's, separated by commas."`
	HumanClients []string `env:"HUMAN_CLIENTS" doc:"The clients whose tokens may be a person's, separated by commas. Required with the URL by serve: without it, any client that registers itself could speak as a person, and agents must not approve."`
	Tenant       string   `env:"TENANT" doc:"The tenant of tokens that carry no tenant claim. If empty, the claim is required."`
	Tenants      []string `env:"TENANTS" doc:"If set, the only tenants that this issuer may speak for."`
	OnlyATJWT    bool     `env:"ONLY_AT_JWT" default:"false" doc:"Refuse tokens whose typ is not at+jwt (RFC 9068)."`
	ClaimTenant  string   `env:"CLAIM_TENANT" default:"tenant" doc:"The claim that holds the tenant; a dotted path is followed."`
	ClaimGroups  string   `env:"CLAIM_GROUPS" default:"groups" doc:"The claim that holds the groups."`
	ClaimRoles   string   `env:"CLAIM_ROLES" default:"roles" doc:"The claim that holds the roles: requester, approver, operator, auditor, admin."`
	ClaimOwner   string   `env:"CLAIM_OWNER" default:"owner" doc:"The claim that names the human who answers for an agent."`
	ClaimClient  string   `env:"CLAIM_CLIENT" doc:"The claim that names the OAuth client. Default: client_id, else azp."`
}

// SignIn is the console's registration at an identity provider (OpenID Connect, code flow with PKCE).
type SignIn struct {
	ClientID         string        `env:"CLIENT_ID" doc:"The console's OAuth client there. Register the redirect URL {public URL}/sign-in/done. Required by serve where the public URL is not this machine's own."`
	ClientSecret     Secret        `env:"CLIENT_SECRET" doc:"Its secret; none for a public client. Or its _FILE."`
	ClientSecretFile string        `env:"CLIENT_SECRET_FILE" doc:"A file that holds the secret instead."`
	Issuer           string        `env:"ISSUER" doc:"Which of the configured identity providers, by its URL. Default: CUTONCE_ISSUER_URL."`
	Scopes           []string      `env:"SCOPES" default:"profile" doc:"What is asked for beside openid, separated by commas. Add what your provider needs to tell groups, and the write scopes of those who may apply at the console."`
	IdleFor          time.Duration `env:"IDLE" default:"12h" doc:"How long a session at the console may go unused."`
	AbsoluteFor      time.Duration `env:"ABSOLUTE" default:"168h" doc:"How long a session may last at all."`
	FreshFor         time.Duration `env:"FRESH_FOR" default:"15m" doc:"How old a sign-in may be that approves a change of high risk."`
}

// Target is a system whose state is changed, with the service's own credential. It is served if its URL is set.
type Target struct {
	URL            string        `env:"URL" doc:"Its API, which must be the one that the simulators speak (internal/target); any other platform needs a connector of its own (docs/wrap-in-go.md). The actions of a platform without URL are not offered; serve needs at least one platform."`
	Token          Secret        `env:"TOKEN" doc:"The service's own bearer credential there. Required with the URL, or its _FILE."`
	TokenFile      string        `env:"TOKEN_FILE" doc:"A file that holds the credential instead."`
	System         string        `env:"SYSTEM" doc:"A name for host and account, such as ads.example/agency-jp. Locks and audit rest on it; never change it while changes are open. Required with the URL."`
	AllowPlainHTTP bool          `env:"ALLOW_PLAIN_HTTP" default:"false" doc:"Accept plain http beyond this machine. The credential travels with every call."`
	HonoursKeys    bool          `env:"HONOURS_KEYS" default:"false" doc:"The platform remembers idempotency keys and answers a repeated one with its first answer. Claim it only if it is so."`
	KeyRetention   time.Duration `env:"KEY_RETENTION" default:"24h" doc:"For how long it remembers them."`
	NoLookup       bool          `env:"NO_LOOKUP" default:"false" doc:"The platform cannot find a change by its request key: operators settle what is unknown."`
	Settle         time.Duration `env:"SETTLE" doc:"How long after a send an empty look-up proves nothing. Default: CUTONCE_CLOCK_SETTLE."`
	ResolveBy      int           `env:"RESOLVE_BY" default:"1" doc:"How many operators must say the same before their word settles an outcome that no look-up could: 1 or 2."`
	Sandbox        bool          `env:"SANDBOX" default:"false" doc:"This account is a sandbox: cutonce connector test may change it. Without this word nothing is sent there by any test."`
}

// Clock are the clocks of a change. The database's clock applies them.
type Clock struct {
	PreviewTTL  time.Duration `env:"PREVIEW_TTL" default:"10m" doc:"From prepare to apply, or to the request for approval."`
	Approval    time.Duration `env:"APPROVAL" default:"24h" doc:"From the request for approval to a decision."`
	ApplyWindow time.Duration `env:"APPLY_WINDOW" default:"30m" doc:"From the last needed approval to apply; at most 24h."`
	Send        time.Duration `env:"SEND" default:"15s" doc:"One outward call."`
	Lease       time.Duration `env:"LEASE" default:"30s" doc:"How long applying may last before it reads as unknown. Longer than the send and its margin."`
	SendMargin  time.Duration `env:"SEND_MARGIN" default:"1s" doc:"What must be left of the lease beyond the send deadline, or nothing is sent."`
	Settle      time.Duration `env:"SETTLE" default:"60s" doc:"How long after a send absent proves nothing, where the connector says nothing of its own."`
	Sweep       time.Duration `env:"SWEEP" default:"5s" doc:"How often lapsed changes are listed and probed; at most 10s."`
	Seal        time.Duration `env:"SEAL" default:"5s" doc:"How often audit chains that have changed are sealed; at most 1m."`
	ProbeBase   time.Duration `env:"PROBE_BASE" default:"1s" doc:"The pause after the first probe that proved nothing; it doubles, up to five minutes."`
	Expiring    time.Duration `env:"EXPIRING" default:"1h" doc:"How long before the end of its time a change that waits for approval is told of as about to expire; never before the last quarter of that time."`
	ApplyWait   time.Duration `env:"APPLY_WAIT" default:"20s" doc:"How long apply waits before it answers as things stand; at most 50s."`
}
