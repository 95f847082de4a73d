package processes

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also what the tests start as processes.
func TestMain(m *testing.M) {
	if role := os.Getenv("PENSTOCK_PROCESSES_ROLE"); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// play is a process: server listens at an address until it is told to end, stubborn
// does so without ending, fails ends at once.
func play(role string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, cancel := Attach(ctx, os.Stdin)
	defer cancel()
	if len(args) > 0 && args[0] == "fail" {
		fmt.Fprintln(os.Stderr, "there is no sense in going on")
		return 3
	}
	l, err := net.Listen("tcp", args[len(args)-1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer l.Close()
	fmt.Println("role", role)
	if args[0] == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
		select {}
	}
	<-ctx.Done()
	return 0
}
