package policy

import (
	"fmt"

	"github.com/google/cel-go/cel"
)

// celCost bounds one evaluation, in CEL's own units: enough for a walk over every tool name a few times.
const celCost = 100_000

// celEnv declares what an expression may ask about. The body itself is not among it: text is for
// body_contains and body_matches, which stream.
func celEnv() (*cel.Env, error) {
	texts := cel.ListType(cel.StringType)
	return cel.NewEnv(
		cel.Variable("method", cel.StringType),
		cel.Variable("host", cel.StringType),
		cel.Variable("path", cel.StringType),
		cel.Variable("header", cel.MapType(cel.StringType, texts)), // names in lower case
		cel.Variable("body_size", cel.IntType),                     // bytes, decoded
		cel.Variable("models", texts),
		cel.Variable("tools", texts),
		cel.Variable("secrets", texts), // kinds found
	)
}

// compileCEL returns the program, or an error and its column in the expression (from 1, 0 when unknown).
func compileCEL(env *cel.Env, text string) (cel.Program, int, error) {
	ast, issues := env.Compile(text)
	if issues != nil && len(issues.Errors()) > 0 {
		first := issues.Errors()[0]
		return nil, first.Location.Column() + 1, fmt.Errorf("%s", first.Message)
	}
	if ast.OutputType() != cel.BoolType {
		return nil, 0, fmt.Errorf("expression gives %v, not bool", ast.OutputType())
	}
	p, err := env.Program(ast, cel.CostLimit(celCost))
	if err != nil {
		return nil, 0, err
	}
	return p, 0, nil
}

func evalCEL(p cel.Program, f *facts) truth {
	out, _, err := p.Eval(map[string]any{
		"method": f.head.Method, "host": f.host, "path": f.path, "header": f.header,
		"body_size": f.size, "models": f.models, "tools": f.tools, "secrets": f.secretsFound(),
	})
	if err != nil {
		return unknown
	}
	b, ok := out.Value().(bool)
	if !ok {
		return unknown
	}
	return known(b)
}
