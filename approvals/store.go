package approvals

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	file     = "approvals.json"
	lockFile = "lock"
	maxFile  = 2 << 20
	maxWait  = 3 * time.Second // for the lock: a request must not hang for ever behind a process that was stopped
)

// A Store is a folder with the approvals of one user.
type Store struct {
	dir string
	now func() time.Time
}

// Open makes the folder when it is not there. One that others may write is refused.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open approvals: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open approvals: %w", err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("open approvals: %s may be written by others (mode %04o)", dir, info.Mode().Perm())
	}
	return &Store{dir: dir, now: time.Now}, nil
}

// change hands f the entries that still count and writes what it returns, all under the lock.
func (s *Store) change(f func([]Entry, time.Time) ([]Entry, error)) error {
	return s.locked(func(now time.Time) error {
		list, err := s.read()
		if err != nil {
			return err
		}
		if list, err = f(living(list, now), now); err != nil {
			return err
		}
		return s.write(list)
	})
}

func (s *Store) locked(f func(time.Time) error) error {
	l, err := os.OpenFile(filepath.Join(s.dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock approvals: %w", err)
	}
	defer l.Close() // unlocks
	for end := time.Now().Add(maxWait); ; time.Sleep(2 * time.Millisecond) {
		err := unix.Flock(int(l.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f(s.now())
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			return fmt.Errorf("lock approvals: %w", err)
		}
	}
}

func (s *Store) read() ([]Entry, error) {
	f, err := os.Open(filepath.Join(s.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read approvals: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("read approvals: %s may be written by others", f.Name())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read approvals: %w", err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("read approvals: %s is larger than %d bytes", f.Name(), maxFile)
	}
	var list []Entry
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("read approvals: %s: %w", f.Name(), err)
	}
	return list, nil
}

// write puts the list in place in one step.
func (s *Store) write(list []Entry) error {
	b, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("write approvals: %w", err)
	}
	f, err := os.CreateTemp(s.dir, file+".*") // 0600
	if err != nil {
		return fmt.Errorf("write approvals: %w", err)
	}
	defer os.Remove(f.Name()) // gone already when the rename was done
	_, err = f.Write(append(b, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write approvals: %w", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(s.dir, file)); err != nil {
		return fmt.Errorf("write approvals: %w", err)
	}
	return nil
}
