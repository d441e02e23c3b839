#!/bin/sh
# agent-ci in the image, on a root file system that can't be written:
#
#     run.sh run --issue octo-org/widgets#7
#     run.sh run weekly.yml        # a job file in this folder, which is no checkout
#
# IMAGE names the image. Run directories are kept in the volume agent-ci. The
# values of keys stay in the environment: the command line shows their names.
set -eu
exec docker run --rm --read-only --cap-drop=ALL --security-opt=no-new-privileges --pids-limit=4096 \
	--tmpfs=/tmp:exec,mode=1777 \
	--tmpfs=/home/agent-ci:exec,mode=0700,uid=10001,gid=10001 \
	--volume=agent-ci:/var/lib/agent-ci \
	--volume="$PWD:/work:ro" \
	--env=OPENAI_API_KEY --env=GITHUB_TOKEN \
	"${IMAGE:-agent-ci}" "$@"
