package inforce

import (
	"time"

	"github.com/rs/zerolog"

	"penstock/schemas/control"
)

// Holder goes by one table of a scope at a time, and by a default while there is none. Its
// methods are called from several goroutines.
type Holder[T any] interface {
	// Put brings a table into force until a time. An error rejects it, and what is in
	// force stays.
	Put(table *T, epoch uint64, until time.Time) error
	// Held is what is in force; false for the default.
	Held() (Held[T], bool)
	// Expire puts the default in the place of a table whose time is over, and says
	// whether there was one.
	Expire(now time.Time) bool
	// GiveWay puts the default in the place of whatever is in force.
	GiveWay()
}

// Held is a table in force.
type Held[T any] struct {
	Scope string
	Epoch uint64
	// Until is when its ttl is over.
	Until time.Time
	Table T
}

// File keeps tables over restarts. It is for one goroutine at a time.
type File[T any] interface {
	// Read returns what it holds; nothing if there is no file.
	Read() ([]Held[T], error)
	// Keep puts what is in force into it, unless that is what it holds.
	Keep(all []Held[T]) error
}

// Kind is what tables of one kind have that others don't. All of it is needed.
type Kind[T any] struct {
	// Kind of the commands.
	Kind control.Kind
	// Scope is what a scope is called, in logs and counts.
	Scope string
	// Of is a command's table; nil if it has none, which is rejected with ErrTable.
	Of       func(c *control.Command) *T
	ErrTable error
	// Log adds to an event what it is told of a table.
	Log func(e *zerolog.Event, table *T)
	// File is the file of a name.
	File func(name string) File[T]
}
