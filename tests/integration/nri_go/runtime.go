// SPDX-License-Identifier: Apache-2.0

// A container runtime's side of NRI, by NRI's own implementation: it takes plugins in as containerd
// does, and tells them what it reads, one JSON object a line, from standard input:
//
//	{"call": "UpdateContainer", "pod": {...}, "container": {...}, "resources": {...}}
//
// pods and containers as NRI's messages have them. "have" only keeps them for Synchronize; "pause" has the
// next Synchronize wait for half a second, after the line "synchronizing". Each line is answered by one: "ok", the microseconds that it took, and what plugins add to a container that is
// created, as JSON; or "error" and why. A plugin that was taken in is told by the line "synchronized".
//
//	runtime SOCKET NAME VERSION
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	nri "github.com/containerd/nri/pkg/adaptation"
)

type command struct {
	Call      string
	Pod       *nri.PodSandbox
	Container *nri.Container
	Resources *nri.LinuxResources
}

type node struct {
	sync.Mutex
	pods       []*nri.PodSandbox
	containers []*nri.Container
	pause      bool
}

func (n *node) keep(c command) error {
	n.Lock()
	defer n.Unlock()
	n.pause = n.pause || c.Call == "pause"
	if c.Pod != nil {
		n.pods = append(n.pods, c.Pod)
	}
	if c.Container != nil {
		n.containers = append(n.containers, c.Container)
	}
	return nil
}

func (n *node) synchronize(ctx context.Context, tell nri.SyncCB) error {
	n.Lock()
	defer n.Unlock()
	if n.pause {
		n.pause = false
		fmt.Println("synchronizing")
		time.Sleep(500 * time.Millisecond)
	}
	_, err := tell(ctx, n.pods, n.containers)
	if err == nil {
		fmt.Println("synchronized")
	}
	return err
}

func refuse(context.Context, []*nri.ContainerUpdate) ([]*nri.ContainerUpdate, error) {
	return nil, fmt.Errorf("an observer asked for an update")
}

// create tells of a container that is to be created; what is to be added to it.
func create(r *nri.Adaptation, c command) (*nri.ContainerAdjustment, error) {
	request := &nri.CreateContainerRequest{Pod: c.Pod, Container: c.Container}
	response, err := r.CreateContainer(context.Background(), request)
	return response.GetAdjust(), err
}

func tell(r *nri.Adaptation, c command) error {
	ctx := context.Background()
	event := &nri.StateChangeEvent{Pod: c.Pod, Container: c.Container}
	switch c.Call {
	case "RunPodSandbox":
		return r.RunPodSandbox(ctx, event)
	case "PostCreateContainer":
		return r.PostCreateContainer(ctx, event)
	case "StartContainer":
		return r.StartContainer(ctx, event)
	case "PostStartContainer":
		return r.PostStartContainer(ctx, event)
	case "UpdateContainer":
		_, err := r.UpdateContainer(ctx, &nri.UpdateContainerRequest{
			Pod: c.Pod, Container: c.Container, LinuxResources: c.Resources})
		return err
	case "PostUpdateContainer":
		return r.PostUpdateContainer(ctx, event)
	case "StopContainer":
		_, err := r.StopContainer(ctx, &nri.StopContainerRequest{Pod: c.Pod, Container: c.Container})
		return err
	case "RemoveContainer":
		return r.RemoveContainer(ctx, event)
	case "StopPodSandbox":
		return r.StopPodSandbox(ctx, event)
	case "RemovePodSandbox":
		return r.RemovePodSandbox(ctx, event)
	}
	return fmt.Errorf("no such call: %q", c.Call)
}

func (n *node) obey(r *nri.Adaptation, line []byte) (*nri.ContainerAdjustment, error) {
	var c command
	if err := json.Unmarshal(line, &c); err != nil {
		return nil, err
	}
	switch c.Call {
	case "have", "pause":
		return nil, n.keep(c)
	case "CreateContainer":
		return create(r, c)
	}
	return nil, tell(r, c)
}

func main() {
	n := &node{}
	nothing := filepath.Join(filepath.Dir(os.Args[1]), "nothing")
	r, err := nri.New(os.Args[2], os.Args[3], n.synchronize, refuse, nri.WithSocketPath(os.Args[1]),
		nri.WithPluginPath(nothing), nri.WithPluginConfigPath(nothing))
	started := false
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for err == nil && lines.Scan() {
		if lines.Text() == "start" && !started {
			started = true
			err = r.Start()
			continue
		}
		begin := time.Now()
		if added, wrong := n.obey(r, lines.Bytes()); wrong != nil {
			fmt.Println("error", wrong)
		} else {
			took := time.Since(begin).Microseconds()
			text, _ := json.Marshal(added)
			fmt.Println("ok", took, string(text))
		}
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}
