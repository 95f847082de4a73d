package queue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/infra/golden"
)

// TestScripts drives a core by hand. Commands:
//
//	core [connections=L] [waiting=N] [background=N] [patience=N]
//	arrive NAME [write] n=N k=K [hedge=D] [finish] [keep] [background] [more=N] [err]
//	done NAME.I | fail NAME.I     a task's function returns
//	hedge NAME                    its hedge is over
//	abandon NAME                  its caller is gone
//	close [background] [waiting]  all of a class are ended
//	state
//
// What comes of each is printed in the order in which it came about.
func TestScripts(t *testing.T) {
	golden.Scripts(t, "testdata/*.txt", func(t *testing.T) golden.Step {
		return golden.EachLine(newScene(t).line)
	})
}

// scene is a core with requests that have names. It is its chooser.
type scene struct {
	t        *testing.T
	core     *Core
	requests map[string]*Request
	out      strings.Builder
}

var errTest = errors.New("broken")

func newScene(t *testing.T) *scene {
	s := &scene{t: t, requests: map[string]*Request{}}
	s.core = NewCore(CoreOptions{Chooser: s})
	return s
}

// Arrived notes what the core says.
func (s *scene) Arrived(backlog int) { fmt.Fprintf(&s.out, "  chooser: backlog %d\n", backlog) }

// Choose says that the request's own code is to be taken.
func (s *scene) Choose(op Op, idle int) Code {
	fmt.Fprintf(&s.out, "  chooser: %s, %d idle\n", op, idle)
	return Code{}
}

func (s *scene) line(line string) string {
	s.out.Reset()
	words := strings.Fields(line)
	args := map[string]string{}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		args[key] = value
	}
	number := func(key string) int {
		n, err := strconv.Atoi(args[key])
		if err != nil && args[key] != "" {
			s.t.Fatalf("%s: %v", line, err)
		}
		return n
	}
	has := func(key string) bool { _, ok := args[key]; return ok }
	switch words[0] {
	case "core":
		s.core = NewCore(CoreOptions{
			Chooser: s, Connections: number("connections"), MaxWaiting: number("waiting"), Background: number("background"),
			Patience: number("patience"),
		})
	case "arrive":
		s.arrive(words[1], number("n"), number("k"), number("more"), args, has)
	case "done", "fail":
		name, index, _ := strings.Cut(words[1], ".")
		i, err := strconv.Atoi(index)
		if err != nil {
			s.t.Fatalf("%s: %v", line, err)
		}
		task := s.requests[name].first
		for range i {
			task = task.sibling
		}
		if words[0] == "done" {
			s.core.Done(task, nil)
		} else {
			s.core.Done(task, fmt.Errorf("%s: %w", words[1], errTest))
		}
	case "hedge":
		s.core.Extend(s.requests[words[1]])
	case "abandon":
		s.core.Abandon(s.requests[words[1]], errTest)
	case "close":
		s.core.AbandonAll(has("background"), has("waiting"), errTest)
	case "state":
		fmt.Fprintf(&s.out, "  %+v\n", s.core.State())
	default:
		s.t.Fatalf("no command: %s", line)
	}
	s.settle()
	return s.out.String()
}

func (s *scene) arrive(name string, n, k, more int, args map[string]string, has func(string) bool) {
	r := &Request{Background: has("background"), Keep: has("keep"), Data: name}
	if has("write") {
		r.Op = Write
	}
	if has("finish") {
		r.Rest = Finish
	}
	hedge, err := time.ParseDuration(args["hedge"])
	if err != nil && has("hedge") {
		s.t.Fatal(err)
	}
	r.Plan = func(Code) Plan {
		p := Plan{Tasks: make([]Task, n), Need: k}
		r.code.Hedge = hedge // the chooser knows no names
		if has("err") {
			p.Err = errTest
		}
		return p
	}
	if more > 0 {
		r.More = func() (Task, bool) { more--; return Task{}, more >= 0 }
	}
	s.requests[name] = r
	if !s.core.Arrive(r) {
		s.out.WriteString("  full\n")
	}
}

// settle starts what can be started and prints it with the events.
func (s *scene) settle() {
	for {
		s.events()
		t, ok := s.core.Next()
		s.events()
		if !ok {
			return
		}
		fmt.Fprintf(&s.out, "  start %s\n", nameOf(t))
	}
}

func (s *scene) events() {
	for e, ok := s.core.Event(); ok; e, ok = s.core.Event() {
		name := e.Request.Data.(string)
		switch e.Kind {
		case Cancelled:
			name = nameOf(e.Task)
		case Hedging:
			name += fmt.Sprintf(", %d held back for %v", e.Request.Held(), e.Request.Code().Hedge)
		case Finished:
			if err := e.Request.Err(); err != nil {
				name += ": " + strings.ReplaceAll(err.Error(), "\n", ", ")
			}
		}
		fmt.Fprintf(&s.out, "  %s %s\n", e.Kind, name)
	}
}

// nameOf is a task's request and number.
func nameOf(t *Task) string {
	i := 0
	for x := t.of.first; x != t; x = x.sibling {
		i++
	}
	return fmt.Sprintf("%s.%d", t.of.Data, i)
}
