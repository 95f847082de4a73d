package queue_test

import (
	"context"
	"fmt"

	"penstock/consumers/executor/coder/queue"
)

// A read of two chunks of three: the answer is there when two have come.
func ExampleQueue() {
	q, err := queue.New(queue.Options{CoreOptions: queue.CoreOptions{Connections: 16, Chooser: queue.Fixed{N: 3, K: 2}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- q.Run(ctx) }()

	chunk := func(context.Context) error { return nil }
	broken := func(context.Context) error { return fmt.Errorf("no such blob") }
	free := make(chan struct{})
	err = q.Do(ctx, &queue.Request{
		Op: queue.Read,
		Plan: func(c queue.Code) queue.Plan {
			tasks := make([]queue.Task, c.N)
			for i := range tasks {
				tasks[i] = queue.Task{Store: fmt.Sprint("east-", i), Run: chunk}
			}
			tasks[0].Run = broken
			return queue.Plan{Tasks: tasks, Need: c.K}
		},
		Ended: func() { close(free) }, // no task writes to a buffer any more
	})
	fmt.Println("read:", err)
	<-free
	stop()
	fmt.Println("stopped:", <-stopped)
	// Output:
	// read: <nil>
	// stopped: <nil>
}

// A simulation starts what Next has, says what has ended, and takes the events.
func ExampleCore() {
	c := queue.NewCore(queue.CoreOptions{Connections: 3, Chooser: queue.Fixed{N: 4, K: 2}})
	c.Arrive(&queue.Request{
		Data: "a read",
		Plan: func(code queue.Code) queue.Plan {
			return queue.Plan{Tasks: make([]queue.Task, code.N), Need: code.K}
		},
	})
	var running []*queue.Task
	for t, ok := c.Next(); ok; t, ok = c.Next() {
		running = append(running, t)
	}
	fmt.Println(len(running), "tasks run,", c.State().Queued, "waits")
	c.Done(running[0], nil)
	c.Next() // the one that waited
	c.Done(running[2], nil)
	for e, ok := c.Event(); ok; e, ok = c.Event() {
		fmt.Println(e.Kind, e.Request.Data)
		if e.Kind == queue.Cancelled {
			c.Done(e.Task, queue.ErrCancelled) // its connection is idle from now on
		}
	}
	fmt.Println(c.Idle(), "connections are idle")
	// Output:
	// 3 tasks run, 1 waits
	// admitted a read
	// finished a read
	// cancelled a read
	// cancelled a read
	// ended a read
	// 3 connections are idle
}
