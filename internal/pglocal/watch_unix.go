//go:build unix

package pglocal

import (
	"io"
	"os/exec"
	"strconv"
)

// watch stands in for the parent-death signal where the kernel has none: a shell that waits at a pipe which only this
// process holds open, and asks the server for a fast shutdown when the pipe ends with us. The returned function calls the
// watch off; it comes before the server's pid may be given to another process.
func watch(pid int, who account) (callOff func(), err error) {
	_, callOff, err = watchWith(pid, who)
	return callOff, err
}

func watchWith(pid int, who account) (pipe io.Closer, callOff func(), err error) {
	cmd := exec.Command("/bin/sh", "-c", `cat >/dev/null; kill -INT "$1"`, "sh", strconv.Itoa(pid))
	cmd.Dir = "/"
	cmd.SysProcAttr = attributes(who)
	if pipe, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return pipe, func() {
		cmd.Process.Kill() // cat dies of its closed pipe, the shell no longer acts on it
		pipe.Close()
		cmd.Wait()
	}, nil
}
