package cgroup

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A Reason is why there can be no cgroup for a session.
type Reason int

const (
	NotMounted  Reason = iota + 1 // no cgroup hierarchy at all
	V1Only                        // only cgroup v1 is mounted
	NotWritable                   // this user may not make one, or not move processes there
	ReadOnly                      // mounted read-only, as in most containers
	Limited                       // a limit on the number or depth of cgroups
	Threaded                      // below a threaded cgroup, which takes no processes
)

// Unavailable says in one line why there is no cgroup, and how to get one.
type Unavailable struct {
	Reason Reason
	Where  string // the directory that was tried, "" if none
	Err    error  // what the kernel said, nil if nothing was tried
}

func (u *Unavailable) Error() string {
	s := u.what()
	if u.Where != "" {
		s += " at " + u.Where
	}
	if u.Err != nil {
		s += fmt.Sprintf(" (%v)", u.Err)
	}
	return "no cgroup for the session: " + s + "; " + u.Hint()
}

func (u *Unavailable) Unwrap() error { return u.Err }

func (u *Unavailable) what() string {
	switch u.Reason {
	case NotMounted:
		return "cgroup v2 is not mounted"
	case V1Only:
		return "only cgroup v1 is mounted"
	case ReadOnly:
		return "cgroup v2 is mounted read-only"
	case Limited:
		return "the limit of cgroups is reached"
	case Threaded:
		return "the cgroup is threaded"
	}
	return "cgroup v2 is not writable for this user"
}

// Hint is what the user can do about it.
func (u *Unavailable) Hint() string {
	switch u.Reason {
	case NotMounted:
		return "mount it with: mount -t cgroup2 none /sys/fs/cgroup"
	case V1Only:
		return "mount v2 beside it with: mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified"
	case ReadOnly:
		return "run the container with a writable cgroup namespace (docker: --cgroupns=private and a writable /sys/fs/cgroup)"
	case Limited:
		return "raise cgroup.max.descendants or cgroup.max.depth, or remove empty cgroups"
	case Threaded:
		return "start from a cgroup whose cgroup.type is domain"
	}
	return "start from a delegated cgroup: systemd-run --user --scope -p Delegate=yes"
}

// reasonOf classifies what making a cgroup in a directory failed with.
func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, unix.EROFS):
		return ReadOnly
	case errors.Is(err, unix.EAGAIN):
		return Limited
	case errors.Is(err, unix.EOPNOTSUPP):
		return Threaded
	}
	return NotWritable
}
