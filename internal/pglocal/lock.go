package pglocal

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// InUseError says that another live process has the cluster open.
type InUseError struct {
	PID int // 0 if it could not be read
	Dir string
}

func (e *InUseError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("the Postgres cluster in %s is in use by %s; stop that first, or choose another name", e.Dir, who)
}

// takeLock makes this process the only one to use dir. The lock is freed by closing the file or by the process's end.
func takeLock(dir, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of %s: %w", dir, err)
	}
	got, err := tryLock(file)
	if err == nil && !got {
		err = &InUseError{PID: holder(file), Dir: dir}
	}
	if err == nil {
		err = sign(file)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func holder(file *os.File) int {
	text, err := io.ReadAll(file)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

func sign(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}
