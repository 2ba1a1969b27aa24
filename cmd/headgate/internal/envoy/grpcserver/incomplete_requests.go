package grpcserver

import (
	"encoding/binary"
	"time"

	"golang.org/x/net/http2"
)

// frames follows the incomplete requests in the frames that a client sends. It reads only the
// header of each frame.
type frames struct {
	skip    int // bytes until the next header
	header  [9]byte
	got     int                   // bytes of header
	streams map[uint32]incomplete // requests that have not ended
	oldest  uint32                // of streams
}

type incomplete struct {
	held  int64
	since time.Time
}

// streamSize is about what an open stream holds besides its message, in bytes.
const streamSize = 16 << 10

func newFrames() frames {
	return frames{skip: len(http2.ClientPreface), streams: map[uint32]incomplete{}}
}

// read follows b, which came at now, and returns by how many bytes more is held.
func (f *frames) read(b []byte, now time.Time) (more int64) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip -= n
			b = b[n:]
			continue
		}
		n := copy(f.header[f.got:], b)
		f.got += n
		b = b[n:]
		if f.got == len(f.header) {
			f.got = 0
			more += f.frame(now)
		}
	}
	return more
}

func (f *frames) frame(now time.Time) (more int64) {
	h := &f.header
	f.skip = int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	kind, flags := http2.FrameType(h[3]), http2.Flags(h[4])
	stream := binary.BigEndian.Uint32(h[5:]) &^ (1 << 31)
	request, open := f.streams[stream]
	switch {
	case kind == http2.FrameData && !flags.Has(http2.FlagDataEndStream):
		more = int64(f.skip)
	case kind == http2.FrameHeaders && !flags.Has(http2.FlagHeadersEndStream) && !open:
		more = streamSize + int64(f.skip)
	case kind == http2.FrameData, kind == http2.FrameRSTStream,
		kind == http2.FrameHeaders && flags.Has(http2.FlagHeadersEndStream):
		delete(f.streams, stream)
		return -request.held
	default:
		return 0
	}
	if !open {
		request.since = now
	}
	request.held += more
	f.streams[stream] = request
	return more
}

// since returns when the oldest incomplete request began. It is zero if there is none.
func (f *frames) since() time.Time {
	if request, open := f.streams[f.oldest]; open {
		return request.since
	}
	var first time.Time
	for stream, request := range f.streams {
		if first.IsZero() || request.since.Before(first) {
			f.oldest, first = stream, request.since
		}
	}
	return first
}
