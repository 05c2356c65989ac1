package devissuer

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
)

// Paths are where Handler answers: the key set, and the issuer's metadata by both customs.
func (i *Issuer) Paths() []string {
	prefix := strings.TrimSuffix(i.base.EscapedPath(), "/")
	return []string{
		prefix + "/jwks.json",
		prefix + "/.well-known/openid-configuration",
		"/.well-known/oauth-authorization-server" + prefix,
	}
}

// Handler serves the public key and the metadata. It has no token endpoint: tokens are printed, not asked for. Unless
// AllowRemote is set it refuses whatever does not come straight from this machine.
func (i *Issuer) Handler() http.Handler {
	paths := i.Paths()
	keys := map[string]any{"keys": []any{map[string]string{
		"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": i.keyID, "x": publicX(i.key),
	}}}
	metadata := map[string]any{
		"issuer": i.cfg.URL, "jwks_uri": i.JWKSURL(),
		"response_types_supported": []string{}, "grant_types_supported": []string{},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"EdDSA"},
	}
	documents := map[string]any{paths[0]: keys, paths[1]: metadata, paths[2]: metadata}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, known := documents[r.URL.EscapedPath()]
		switch {
		case !i.cfg.AllowRemote && !IsLocal(r):
			w.WriteHeader(http.StatusForbidden)
		case !known || r.Method != http.MethodGet:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			_ = json.NewEncoder(w).Encode(document)
		}
	})
}

// IsLocal reports whether a request comes from this machine and means it: the peer is loopback, nobody forwarded it, and
// the Host is loopback too (a page elsewhere can point its own name at 127.0.0.1; DNS rebinding). The console's development
// sign-in must ask it as well.
func IsLocal(r *http.Request) bool {
	for _, forwarded := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if r.Header.Get(forwarded) != "" {
			return false
		}
	}
	peer, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return isLoopback(peer) && (isLoopback(strings.Trim(host, "[]")) || strings.EqualFold(host, "localhost"))
}

func isLoopback(address string) bool {
	ip := net.ParseIP(address)
	return ip != nil && ip.IsLoopback()
}
