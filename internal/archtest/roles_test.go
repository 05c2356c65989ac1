package archtest

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// TestRolesAreAskedInOnePlace: whoever reads a role by itself decides who may do what beside the table (actor.Grants).
func TestRolesAreAskedInOnePlace(t *testing.T) {
	t.Parallel()
	// These carry roles or show them, and decide nothing by them.
	carry := []string{"internal/actor/", "internal/auth/", "internal/devissuer/", "internal/signin/signintest/", "policy/", "verify/", "cmd/cutonce/dev_people.go", "test/"}
	found := 0
	sources(t, func(path string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "Roles" && s.Sel.Name != "HasRole" && !strings.HasPrefix(s.Sel.Name, "Role") {
				return true
			}
			if x, isName := s.X.(*ast.Ident); strings.HasPrefix(s.Sel.Name, "Role") && s.Sel.Name != "Roles" && (!isName || x.Name != "actor") {
				return true
			}
			for _, room := range carry {
				if strings.HasPrefix(path, room) {
					found++
					return true
				}
			}
			t.Errorf("%s asks for a role: use Actor.May", set.Position(s.Pos()))
			return true
		})
	})
	if found == 0 {
		t.Error("no role is found anywhere: is anything looked at?")
	}
}
