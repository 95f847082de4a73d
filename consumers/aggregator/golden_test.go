package aggregator

import (
	"testing"

	"penstock/infra/golden"
)

func TestGoldenScripts(t *testing.T) {
	golden.Scripts(t, "testdata/scripts/*.txt", func(t *testing.T) golden.Step {
		s := &script{t: t}
		return golden.EachLine(func(line string) string {
			s.out.Reset()
			s.line(line)
			return s.out.String()
		})
	})
}
