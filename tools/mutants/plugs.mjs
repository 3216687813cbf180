/** What a plug may never do to its host, and what it must write however late the store is. */
import { weaken } from './mutant.mjs'

const [WS, SOCKET_IO, PLAYWRIGHT, OUTAGE, ELSEWHERE] = ['ws', 'socket-io', 'playwright', 'outage', 'elsewhere'].map(
  (name) => `test/plugs/${name}.test.ts`,
)
const [CLIENTS, ENDED, PRESENCES] = ['clients', 'ended-sockets', 'presences'].map(
  (name) => `test/plugs/${name}.test.ts`,
)
const WRITES_AGAIN = 'test/redis/writes-again.test.ts'

export const PLUGS = [
  ...weaken('src/plugs/follow/writer.ts', OUTAGE, [
    ['a store that is down is not tried by all', "hasEnded || state === 'down' || busy", 'hasEnded || busy'],
    ['one that fails alone stops nobody', "if (state === 'up' && suspects.has(entry))", 'if (false)'],
    ['what has failed has another turn', '        waiting.add(entry)\n        suspects', '        suspects'],
  ]),
  ...weaken('src/plugs/follow/client-writer.ts', OUTAGE, [
    ['who left unheard ends as unknown', 'leftAt <= failedAt() ? UNKNOWN : reason', 'reason'],
    ['who has gone unanswered is ended', 'if (!wasNotRun(error)) addUnsure(client, member)', ''],
    [
      'who holds a client now is not ousted by one that has gone',
      'identity?.instance_id === holder',
      'identity !== undefined',
    ],
    ['a client that is held elsewhere stays there', 'client.ousted?.member === member &&', 'false &&', ELSEWHERE],
    ['who is refused for good is followed no more', 'if (isFinal(error)) refuse(member)', '', WS],
    [
      'what changes while it is connected is said',
      'client.isDue = client.isChanged\n  }',
      'client.isDue = false\n  }',
      CLIENTS,
    ],
    [
      'what changes while a sign of life fails is said',
      'client.isChanged ||= says',
      'client.isChanged = says',
      CLIENTS,
    ],
    ['who is superseded again is told again', '      member.isSuperseded = false\n', '', CLIENTS],
    [
      'who held a client when the store lost its data has it first',
      'if (!ousted.wasHeld) return false',
      'return false',
      CLIENTS,
    ],
    ['who is superseded is told', '    tellSuperseded(client)\n', '', WS],
  ]),
  ...weaken('src/plugs/follow/clients.ts', WS, [
    ['the later one holds a client', 'findIndex(({ arrival }) => arrival > member.arrival)', 'length'],
    [
      'who is being connected has changed, too',
      'client?.members.at(-1) !== member',
      'client?.written?.member !== member',
      CLIENTS,
    ],
    ['signs of life are written seldom', ' || now() - client.beatAt < heartbeatMs / 2', ''],
    ['so many of those that left are kept', 'if (left.size > maxFollowed && first) forget(first)', '', OUTAGE],
  ]),
  ...weaken('src/plugs/follow/connections.ts', WS, [
    [
      'who has gone before it was known is not written',
      'whose it was.\n      if (members.get(member.peer) !== member) return',
      'whose it was.',
    ],
    ['so many are followed', 'if (members.size >= maxFollowed) {', 'if (false) {'],
    ['who is silent is asked', '      probe(peer)\n', ''],
    ['so many are asked at a turn', 'if (++asked % PROBES === 0) await sleep(0)', '', CLIENTS],
  ]),
  ...weaken('src/plugs/ws/follow.ts', WS, [
    ['who was closed unheard is no more', 'socket.readyState === CLOSED', 'false', ENDED],
    ['sockets are let go of', "socket.off('pong', onSign)", ''],
    ['the server is let go of', "server.off('connection', onConnection)", ''],
  ]),
  ...weaken('src/plugs/socket.io/follow.ts', SOCKET_IO, [
    ['so many rooms are named, and no long ones', 'named.length < ROOMS_MAX && room.length <= ROOM_CHARS', 'true'],
    ['who was kicked before is not followed', 'if (!socket.connected) return', '', ENDED],
    ['who was ended unheard is no more', 'else follower.leave(socket, UNKNOWN)', '', ENDED],
    ['links are let go of', "conn.off('upgrade', onUpgrade)", ''],
  ]),
  ...weaken('src/plugs/socket.io/namespaces.ts', ENDED, [
    ['namespaces are let go of', 'if (namespace) releases.get(namespace)?.()', ''],
  ]),
  ...weaken('src/plugs/follow/presences.ts', PRESENCES, [
    ['a late answer undoes none', ' || turn < entry.answered', ''],
    ['what was taken before is ended', 'isForeign(error) ? undefined : before', 'undefined'],
    ['what is another client’s is left to it', 'isForeign(error) ? undefined : before', 'presence', PLAYWRIGHT],
    ['another owner’s is another record', 'entry.written.key !== presence.key', 'false'],
  ]),
  ...weaken('src/plugs/playwright/told.ts', PRESENCES, [
    [
      'a task that the host gave stays',
      'if (task_id !== undefined) await setTask(task_id,',
      'await setTask(task_id ?? null,',
    ],
    ['who has no task as yet is given one later', "task_id === undefined ? 'user-owned'", "!hasTask ? 'user-owned'"],
    ['a task that is refused is no page that is', "error.code !== 'invalid_input'", 'true'],
  ]),
  ...weaken('src/plugs/playwright/follow.ts', PLAYWRIGHT, [
    ['a page that has crashed is closed', "['close', 'crash'] as const", "['close'] as const"],
    ['what no event told of is found', 'report, look })', 'report, look() {} })'],
    ['all goes with its browser', 'for (const context of windows.keys()) leaveContext(context)', ''],
  ]),
  ...weaken('src/redis/connections/scripts.ts', WRITES_AGAIN, [
    ['what was said later is not undone', 'by ~= own_by or tonumber(own_at) > tonumber(at)', 'true'],
  ]),
]
