package grpcserver

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

// frames follows the frames that a client sends, to know what its incomplete requests hold. Of a
// frame, it reads the header only.
type frames struct {
	skip    int // bytes until the next header
	header  [9]byte
	got     int              // bytes of header
	streams map[uint32]int64 // what the requests hold that have not ended
}

// streamSize is what an open stream holds besides its message, about.
const streamSize = 16 << 10

func newFrames() frames {
	return frames{skip: len(http2.ClientPreface), streams: map[uint32]int64{}}
}

// read follows b, and returns by how many bytes more is held.
func (f *frames) read(b []byte) (more int64) {
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
			more += f.frame()
		}
	}
	return more
}

func (f *frames) frame() (more int64) {
	h := &f.header
	f.skip = int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	kind, flags := http2.FrameType(h[3]), http2.Flags(h[4])
	stream := binary.BigEndian.Uint32(h[5:]) &^ (1 << 31)
	held, open := f.streams[stream]
	switch {
	case kind == http2.FrameData && !flags.Has(http2.FlagDataEndStream):
		more = int64(f.skip)
	case kind == http2.FrameHeaders && !flags.Has(http2.FlagHeadersEndStream) && !open:
		more = streamSize + int64(f.skip)
	case kind == http2.FrameData, kind == http2.FrameHeaders && flags.Has(http2.FlagHeadersEndStream),
		kind == http2.FrameRSTStream:
		delete(f.streams, stream)
		return -held
	default:
		return 0
	}
	f.streams[stream] = held + more
	return more
}
