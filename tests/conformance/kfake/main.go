// kfake of franz-go, with locks that soon expire; its first line is its address.
package main

import (
	"fmt"
	"os"
	"os/signal"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(0),
		kfake.BrokerConfigs(map[string]string{
			"group.share.heartbeat.interval.ms":   "500",
			"group.share.record.lock.duration.ms": "1500",
			"share.record.lock.sweep.interval.ms": "100",
		}),
	)
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	<-stop
}
