package accesslog

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"penstock/infra/errorkind"
	"penstock/schemas/scalar"
)

// expression is a compiled expression. Its language has no loops without end,
// and calls nothing but what is here.
type expression struct {
	program *vm.Program
	names   []string // fields that it asks for
	slots   []int
	machine *vm.VM
	env     environment
}

// environment is what an expression sees.
type environment struct {
	Value  string                     `expr:"value"`
	Field  func(string) any           `expr:"field"`
	Number func(any) (float64, error) `expr:"number"`
	// Unescape undoes the %-escapes of a part of a path.
	Unescape func(string) string `expr:"unescape"`
}

// compileExpression checks an expression's names and types.
func compileExpression(text string) (*expression, error) {
	e := &expression{}
	program, err := expr.Compile(text, expr.Env(environment{}), expr.Patch(e))
	if err != nil {
		return nil, errorkind.Errorf(ErrFormat, "expr: %w", err)
	}
	e.program = program
	return e, nil
}

// Visit collects the fields that are asked for by name.
func (e *expression) Visit(node *ast.Node) {
	call, ok := (*node).(*ast.CallNode)
	if !ok || len(call.Arguments) != 1 {
		return
	}
	if callee, ok := call.Callee.(*ast.IdentifierNode); !ok || callee.Value != "field" {
		return
	}
	if name, ok := call.Arguments[0].(*ast.StringNode); ok {
		e.names = append(e.names, name.Value)
	}
}

// bind gives the expression the fields of a shape. A field whose name is
// calculated has no value.
func (e *expression) bind(b *bound) *expression {
	own := &expression{program: e.program, names: e.names, machine: &vm.VM{}}
	for _, name := range e.names {
		own.slots = append(own.slots, b.slot(name))
	}
	return own
}

// alone reports whether the outcome follows from the value alone.
func (e *expression) alone() bool { return len(e.names) == 0 }

// run calculates. nil has no value; an error of the expression is failed.
func (e *expression) run(value []byte, fields [][]byte) derived {
	e.env = environment{Value: string(value), Number: toNumber, Unescape: unescaped, Field: func(name string) any {
		for i, n := range e.names {
			if n == name && e.slots[i] >= 0 {
				if b := fields[e.slots[i]]; !scalar.IsMissing(b) {
					return string(b)
				}
			}
		}
		return nil
	}}
	out, err := e.machine.Run(e.program, e.env)
	if err != nil {
		return derived{err.Error(), failed}
	}
	switch v := out.(type) {
	case nil:
		return derived{state: missing}
	case string:
		return derived{text: v}
	case bool:
		return derived{text: strconv.FormatBool(v)}
	case int:
		return derived{text: strconv.Itoa(v)}
	case float64:
		return derived{text: strconv.FormatFloat(v, 'f', -1, 64)}
	}
	return derived{fmt.Sprintf("it gives a %T", out), failed}
}

// unescaped undoes the %-escapes of a text as an entry point does of an id; a
// text that is not escaped by the rules stays as it is.
func unescaped(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// toNumber reads a number as logs have it.
func toNumber(v any) (float64, error) {
	switch v := v.(type) {
	case int:
		return float64(v), nil
	case float64:
		return v, nil
	case string:
		if n, ok := scalar.Float([]byte(v)); ok {
			return n, nil
		}
		return 0, fmt.Errorf("%.40q is no number", v)
	}
	return 0, fmt.Errorf("no number, but %v", v)
}
