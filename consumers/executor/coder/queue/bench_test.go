package queue

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkDo is what the queue costs a request whose tasks do nothing, from Do to its
// answer, by one client or by many; ns/task is that of one task.
func BenchmarkDo(b *testing.B) {
	nothing := func(context.Context) error { return nil }
	for _, code := range []Code{{N: 1, K: 1}, {N: 4, K: 2}, {N: 12, K: 6}, {N: 12, K: 12}} {
		q, err := New(Options{CoreOptions: CoreOptions{Connections: 16, MaxWaiting: 1 << 20, Chooser: Fixed(code)}})
		if err != nil {
			b.Fatal(err)
		}
		do := func(b *testing.B) {
			r := &Request{Plan: func(c Code) Plan {
				p := Plan{Tasks: make([]Task, c.N), Need: c.K}
				for i := range p.Tasks {
					p.Tasks[i].Run = nothing
				}
				return p
			}}
			if err := q.Do(b.Context(), r); err != nil {
				b.Error(err)
			}
		}
		perTask := func(b *testing.B, before State) {
			if after := q.State(); after.Done+after.Cancelled > before.Done+before.Cancelled {
				ran := after.Done + after.Cancelled - before.Done - before.Cancelled
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(ran), "ns/task")
			}
		}
		ctx, stop := context.WithCancel(b.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- q.Run(ctx) }()
		b.Run(fmt.Sprintf("clients=1/n=%d/k=%d", code.N, code.K), func(b *testing.B) {
			b.ReportAllocs()
			before := q.State()
			for b.Loop() {
				do(b)
			}
			perTask(b, before)
		})
		b.Run(fmt.Sprintf("clients=many/n=%d/k=%d", code.N, code.K), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(8)
			before := q.State()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					do(b)
				}
			})
			perTask(b, before)
		})
		stop()
		if err := <-stopped; err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkCore is the rule alone: a request of (12,6) from its arrival to its end.
func BenchmarkCore(b *testing.B) {
	c := NewCore(CoreOptions{Connections: 16, Chooser: Fixed{N: 12, K: 6}})
	b.ReportAllocs()
	var r Request
	var tasks [12]Task
	plan := func(Code) Plan {
		clear(tasks[:])
		return Plan{Tasks: tasks[:], Need: 6}
	}
	for b.Loop() {
		r = Request{Plan: plan}
		c.Arrive(&r)
		for t, ok := c.Next(); ok; t, ok = c.Next() {
			_ = t
		}
		for i := range 6 {
			c.Done(&tasks[i], nil)
		}
		for e, ok := c.Event(); ok; e, ok = c.Event() {
			if e.Kind == Cancelled {
				c.Done(e.Task, ErrCancelled)
			}
		}
	}
}
