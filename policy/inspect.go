package policy

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// inspect refuses what CEL's types let through but money must not meet, and collects what the rule looks at.
func inspect(checked *ast.AST, d declared) inspector {
	in := inspector{source: checked.SourceInfo(), declared: d}
	ast.PreOrderVisit(ast.NavigateAST(checked), ast.NewExprVisitor(func(e ast.Expr) {
		in.visit(e.(ast.NavigableExpr))
	}))
	return in
}

// declared is what a policy declares beside its rules, for them to name.
type declared struct {
	when when
	caps []capText
}

type inspector struct {
	source *ast.SourceInfo
	declared
	looks   []look
	timed   bool
	exposed bool
	wrong   []*common.Error
}

func (in *inspector) refuse(e ast.Expr, format string, args ...any) {
	in.wrong = append(in.wrong, &common.Error{
		Location: in.source.GetStartLocation(e.ID()), Message: fmt.Sprintf(format, args...), ExprID: e.ID(),
	})
}

func (in *inspector) visit(e ast.NavigableExpr) {
	switch {
	case e.Type().Kind() == types.DoubleKind:
		in.refuse(e, "floating-point numbers are not exact; use whole numbers, amounts or percent(…)")
	case e.Kind() == ast.StructKind:
		in.refuse(e, "rules make no objects")
	case e.Type().Kind() == types.StructKind && !selected(e):
		in.refuse(e, "name a field of %s", e.Type())
	}
	if e.Kind() == ast.IdentKind && e.AsIdent() == momentName {
		in.timed = true
		if in.when.zone == nil {
			in.refuse(e, "declare where its days and hours are, at the top of a policy file: zone: Asia/Tokyo")
		}
	}
	if e.Kind() == ast.SelectKind {
		in.total(e)
	}
	switch e.Kind() {
	case ast.CallKind:
		in.call(e, e.AsCall())
	case ast.SelectKind, ast.IdentKind:
		if found, ok := lookOf(e); ok && !slices.Contains(in.looks, found) {
			in.looks = append(in.looks, found)
		}
	}
}

// total wants exposure.CAP.TOTAL to name a cap that is declared, and a currency that the cap has a limit in: no change could ever have
// another.
func (in *inspector) total(e ast.NavigableExpr) {
	if name, ok := capOf(e); ok {
		in.exposed = true
		if in.cap(name) == nil {
			in.refuse(e, "%s.%s: there is no such cap", exposureName, name)
		}
		return
	}
	of := e.AsSelect().Operand()
	tender, is := tenders()[e.AsSelect().FieldName()]
	if !is || of.Kind() != ast.SelectKind {
		return
	}
	name, ok := capOf(of.AsSelect().Operand())
	if !ok || in.cap(name) == nil {
		return
	}
	if limit := in.cap(name).Limit; limit.percent == "" {
		if _, known := limit.amounts[tender.code]; !known {
			in.refuse(e, "the cap %s has no limit in %s", name, tender.code)
		}
	}
}

func (in *inspector) cap(name string) *capText {
	at := slices.IndexFunc(in.caps, func(c capText) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	return &in.caps[at]
}

// selected reports whether the expression is only there for one of its fields.
func selected(e ast.NavigableExpr) bool {
	parent, ok := e.Parent()
	return ok && (parent.Kind() == ast.SelectKind ||
		parent.Kind() == ast.CallKind && parent.AsCall().IsMemberFunction() && parent.AsCall().Target().ID() == e.ID())
}

func (in *inspector) call(e ast.NavigableExpr, call ast.CallExpr) {
	switch name := call.FunctionName(); {
	case name == "dyn":
		in.refuse(e, "dyn would hide a currency from the compiler")
	case isLiteral(name):
		in.literal(e, name, call.Args()[0])
	case name == "within":
		in.hours(e, call.Args())
	case name == "during":
		in.days(e, call.Args()[0])
	case name == operators.Equals || name == operators.NotEquals:
		in.alike(e, e.Children()[0].Type(), e.Children()[1].Type())
	case name == operators.In:
		in.alike(e, types.NewListType(e.Children()[0].Type()), e.Children()[1].Type())
	}
}

// literal wants krw(…) and percent(…) to hold a literal that fits, so that a typing error stops the start and not a change.
func (in *inspector) literal(e ast.Expr, name string, arg ast.Expr) {
	if arg.Kind() != ast.LiteralKind {
		in.refuse(e, "%s takes a number written out", name)
		return
	}
	if _, err := evaluateLiteral(name, arg.AsLiteral()); err != nil {
		in.refuse(e, "%v", err)
	}
}

// hours wants times of day that are written out.
func (in *inspector) hours(e ast.Expr, args []ast.Expr) {
	for _, arg := range args {
		if text, ok := written(arg); !ok || !hourAndMinute(text) {
			in.refuse(e, `within takes times of day such as "09:00"`)
		}
	}
}

// days wants the name of a calendar that is declared.
func (in *inspector) days(e ast.Expr, arg ast.Expr) {
	name, ok := written(arg)
	if _, known := in.when.calendars[name]; !ok || !known {
		in.refuse(e, "during takes the name of a calendar that the policy declares; %q is none", name)
	}
}

// written is a text that stands in the rule itself.
func written(arg ast.Expr) (string, bool) {
	if arg.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := arg.AsLiteral().Value().(string)
	return text, ok
}

func isLiteral(function string) bool {
	_, known := tenders()[function]
	return known || function == "percent"
}

func evaluateLiteral(function string, arg ref.Val) (ref.Val, error) {
	if function == "percent" {
		return percent(fmt.Sprint(arg.Value()))
	}
	return literal(tenders()[function].code, arg)
}

// alike wants both sides of == to have the very same type where exact values are concerned: CEL would let an untyped input
// meet an amount and call them unequal.
func (in *inspector) alike(e ast.Expr, left, right *types.Type) {
	if (holdsExact(left) || holdsExact(right)) && !left.IsExactType(right) {
		in.refuse(e, "%s cannot be compared with %s", left, right)
	}
}

func holdsExact(t *types.Type) bool {
	return t.TypeName() == amountRuntime.TypeName() || t.TypeName() == ratioRuntime.TypeName() ||
		slices.ContainsFunc(t.Parameters(), holdsExact)
}
