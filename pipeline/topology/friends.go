package topology

import (
	"context"
	"strconv"
	"strings"

	"penstock/consumers/decider/placement"
	"penstock/producers/recording"
	"penstock/schemas/event"
)

// ReadFriends reads a friends file (plain, gz, zst): lines of two users and,
// if there is a third column, the social level between them, else 1; columns
// are separated by tabs, commas or spaces, and a friendship holds both ways.
func ReadFriends(ctx context.Context, name string, bad func(recording.BadLine)) ([]placement.Friend, error) {
	var out []placement.Friend
	_, err := recording.EachLine(ctx, name, bad, func(line []byte) *recording.LineFault {
		f := strings.FieldsFunc(string(line), func(r rune) bool { return r == '\t' || r == ',' || r == ' ' })
		if len(f) < 2 || len(f) > 3 {
			return &recording.LineFault{Field: "columns", Got: strconv.Itoa(len(f)), Expected: "two users, and perhaps a social level"}
		}
		for i, id := range f[:2] {
			if len(id) > event.MaxID {
				return &recording.LineFault{Field: "user " + strconv.Itoa(i+1), Got: id[:40], Expected: "at most " + strconv.Itoa(event.MaxID) + " bytes"}
			}
		}
		level := int64(1)
		if len(f) == 3 {
			var err error
			if level, err = strconv.ParseInt(f[2], 10, 64); err != nil || level < 0 {
				return &recording.LineFault{Field: "level", Got: f[2], Expected: "a whole number of at least 0"}
			}
		}
		if f[0] != f[1] {
			out = append(out, placement.Friend{Owner: f[0], User: f[1], Level: level}, placement.Friend{Owner: f[1], User: f[0], Level: level})
		}
		return nil
	})
	return out, err
}
