package memtable

import (
	"math/bits"
	"reflect"
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
)

func TestSlotsHoldNoPointers(t *testing.T) {
	for _, kind := range []reflect.Type{reflect.TypeFor[slot](),
		reflect.TypeFor[algorithm.Entry]()} {
		fields := []reflect.Type{kind}
		if kind.Kind() == reflect.Struct {
			fields = fields[:0]
			for f := range kind.Fields() {
				fields = append(fields, f.Type)
			}
		}
		for _, f := range fields {
			if f.Kind() != reflect.Uint64 {
				t.Errorf("%v holds a %v: the garbage collector may have to look at it", kind, f)
			}
		}
	}
	if size := reflect.TypeFor[slot]().Size(); size != 24 {
		t.Errorf("a slot has %d bytes, and 24 keep a key below 32", size)
	}
	// Where pointers have 4 bytes, few cores share a cache.
	if size := reflect.TypeFor[Shard]().Size(); size%64 != 0 && bits.UintSize == 64 {
		t.Errorf("a shard has %d bytes, not a whole number of cache lines", size)
	}
}
