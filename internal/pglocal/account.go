package pglocal

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
)

// account is whom a private server runs as. The zero drop means: as this process.
type account struct {
	name string
	uid  int
	gid  int
	drop bool // this process is root, which Postgres refuses to run as
}

// DefaultDir is where private clusters live unless the configuration says otherwise. It is not a temporary folder:
// age-based cleaners would eat a cluster's cold files. For root it is outside root's home, which no other account can enter.
func DefaultDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/cutonce"
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "cutonce")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "cutonce-"+strconv.Itoa(os.Geteuid()))
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "cutonce")
	}
	return filepath.Join(home, ".local", "state", "cutonce")
}

// chooseAccount keeps the owner of existing data; otherwise root gives way to postgres or nobody. The account must be in
// passwd, because initdb looks it up there.
func chooseAccount(data string) (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	names := []string{"postgres", "nobody"}
	if info, err := os.Stat(data); err == nil {
		owner, err := user.LookupId(strconv.Itoa(ownerOf(info)))
		if err != nil {
			return account{}, fmt.Errorf("find the account that owns %s: %w", data, err)
		}
		names = []string{owner.Username}
	}
	for _, name := range names {
		if found, err := lookup(name); err == nil && found.uid != 0 {
			return found, nil
		}
	}
	return account{}, fmt.Errorf("postgres refuses to run as root, and none of the accounts %v is usable; create one with: useradd --system postgres", names)
}

func lookup(name string) (account, error) {
	found, err := user.Lookup(name)
	if err != nil {
		return account{}, err
	}
	uid, err := strconv.Atoi(found.Uid)
	if err != nil {
		return account{}, err
	}
	gid, err := strconv.Atoi(found.Gid)
	return account{name: name, uid: uid, gid: gid, drop: true}, err
}

// own hands a path to the account.
func (a account) own(path string) error {
	if !a.drop {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// canReach reports which folder on the way to path the account may not enter.
func (a account) canReach(path string) error {
	if !a.drop {
		return nil
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err == nil && !a.mayEnter(info) {
			return fmt.Errorf("%s cannot be entered by the account %s, which has to run Postgres there; choose a folder outside it", dir, a.name)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (a account) mayEnter(info os.FileInfo) bool {
	switch mode := info.Mode().Perm(); {
	case ownerOf(info) == a.uid:
		return mode&0o100 != 0
	case groupOf(info) == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// ensureDir creates a folder that only this process's user can write to, and refuses one that others prepared.
func ensureDir(path string) error {
	if err := makeDir(path, 0o711); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() || ownerOf(info) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s must be a folder that belongs to the current user and that nobody else may write to", path)
	}
	return nil
}

// makeDir gives a new folder its mode whatever the umask is: the server's account has to pass through.
func makeDir(path string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch err := os.Mkdir(path, mode); {
	case errors.Is(err, os.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return os.Chmod(path, mode)
}
