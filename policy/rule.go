package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"
)

// costLimit bounds one rule's work in CEL's cost units (about one per step or element). It is deterministic, which a clock
// would not be: the same facts always give the same ruling. It is a few milliseconds, and a hundred times what the shipped rules use.
const costLimit = 20_000

// rule is a compiled rule.
type rule struct {
	name     string
	actions  []string
	severity severity
	needs    Requirement
	abstain  bool
	risk     string
	texts    map[string]string
	program  cel.Program
	// looks are the values that the expression reads, as "before.daily_budget".
	looks []look
	// timed says that the answer depends on the moment, exposed on what other changes come to.
	timed, exposed bool
}

func compile(text ruleText, d declared) (rule, error) {
	env, err := vocabulary()
	if err != nil {
		return rule{}, err
	}
	checked, issues := env.Compile(text.When.Text)
	if issues.Err() != nil {
		return rule{}, text.refuse(issues.Errors())
	}
	if checked.OutputType() != cel.BoolType {
		return rule{}, fmt.Errorf("rule %s (line %d): when must be true or false, not %s", text.Name, text.When.Line, checked.OutputType())
	}
	in := inspect(checked.NativeRep(), d)
	if len(in.wrong) > 0 {
		return rule{}, text.refuse(in.wrong)
	}
	program, err := env.Program(checked, cel.CostLimit(costLimit), cel.EvalOptions(cel.OptOptimize), cel.CustomDecorator(fold))
	if err != nil {
		return rule{}, fmt.Errorf("rule %s (line %d): %w", text.Name, text.When.Line, err)
	}
	return rule{
		name: text.Name, actions: text.Actions, severity: text.Then.Severity, needs: requirement(text.Then.Require),
		abstain: text.Then.Reject == abstains, risk: text.Risk, texts: text.Message, program: program, looks: in.looks, timed: in.timed,
		exposed: in.exposed,
	}, nil
}

// refuse names the rule, the line of the file where its expression starts, and the place inside the expression.
func (r ruleText) refuse(wrong []*cel.Error) error {
	said := make([]string, len(wrong))
	for i, w := range wrong {
		said[i] = fmt.Sprintf("%d:%d: %s", w.Location.Line(), w.Location.Column()+1, w.Message)
	}
	return fmt.Errorf("rule %s (line %d): when: %s", r.Name, r.When.Line, strings.Join(said, "; "))
}

// fold computes amounts and percentages once, when the rule is compiled.
func fold(step interpreter.Interpretable) (interpreter.Interpretable, error) {
	call, ok := step.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 1 || !isLiteral(call.Function()) {
		return step, nil
	}
	constant, ok := call.Args()[0].(interpreter.InterpretableConst)
	if !ok {
		return step, nil
	}
	value, err := evaluateLiteral(call.Function(), constant.Value())
	if err != nil {
		return nil, err
	}
	return interpreter.NewConstValue(call.ID(), value), nil
}

// concerns reports whether the rule is about this action. A rule without actions is about all of them.
func (r *rule) concerns(action string) bool {
	return len(r.actions) == 0 || slices.Contains(r.actions, action)
}

// answer is what became of a rule: it holds, it does not, or that cannot be told.
type answer struct {
	holds   bool
	unsure  bool
	missing string
}

func (r *rule) ask(s *scope) answer {
	out, _, err := r.program.Eval(s)
	var lacks missing
	switch {
	case errors.As(err, &lacks):
		return answer{unsure: true, missing: lacks.path}
	case err != nil || types.IsUnknownOrError(out):
		return answer{unsure: true}
	}
	holds, ok := out.(types.Bool)
	return answer{holds: ok && bool(holds), unsure: !ok}
}
