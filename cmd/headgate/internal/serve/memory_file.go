package serve

import (
	"context"
	"time"
)

// restoreMemory reads the file of the store, whose overrides have none of before.
func (s *server) restoreMemory() {
	entries, err := s.stores.file.Load()
	if err != nil {
		s.log.Error(err.Error())
	}
	for name, value := range entries {
		if err := s.overrides.Swap(context.Background(), name, "", value); err != nil {
			s.log.Error("an override of the memory file is lost", "name", name, "error", err)
		}
	}
}

// saveInterval is how often the file is written: what a killed server forgets at most.
const saveInterval = time.Minute

// keepMemory writes the file at once, so that a wrong path is noticed, and then in intervals.
func (s *server) keepMemory(ctx context.Context) {
	for ctx.Err() == nil {
		s.saveMemory()
		select {
		case <-ctx.Done():
		case <-time.After(saveInterval):
		}
	}
}

func (s *server) saveMemory() {
	if err := s.stores.file.Save(s.overrides.Entries()); err != nil {
		s.log.Error("the memory file was not written", "error", err)
	}
}
