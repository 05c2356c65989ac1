package metrics

import "slices"

// other is the label of every tenant that is not configured. It is none that an issuer's claim could choose to be told apart by.
const other = "other"

// tenants are those with a label of their own. A claim can name any tenant, where an issuer is not kept to some, so that the names of
// others must not become labels.
type tenants []string

func (t tenants) label(tenant string) string {
	if slices.Contains(t, tenant) {
		return tenant
	}
	return other
}

// labels are all that label can give.
func (t tenants) labels() []string { return append(slices.Clone(t), other) }
