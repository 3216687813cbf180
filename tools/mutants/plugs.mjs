/** What a plug may never do to its host, and what it must write however late the store is. */
import { weaken } from './mutant.mjs'

const [WS, SOCKET_IO, PLAYWRIGHT, OUTAGE, ELSEWHERE] = ['ws', 'socket-io', 'playwright', 'outage', 'elsewhere'].map(
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
    ['a client that is held elsewhere stays there', 'client.ousted === member &&', 'false &&', ELSEWHERE],
    ['who is refused for good is followed no more', 'if (isFinal(error)) refuse(member)', '', WS],
    ['who is superseded is told', '    tellSuperseded(client)\n', '', WS],
  ]),
  ...weaken('src/plugs/follow/clients.ts', WS, [
    ['the later one holds a client', 'findIndex(({ arrival }) => arrival > member.arrival)', 'length'],
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
    ['who is silent is asked', 'if (seenAt <= since) probe(peer)', '{}'],
  ]),
  ...weaken('src/plugs/ws/follow.ts', WS, [
    ['sockets are let go of', "socket.off('pong', onSign)", ''],
    ['the server is let go of', "server.off('connection', onConnection)", ''],
  ]),
  ...weaken('src/plugs/socket.io/follow.ts', SOCKET_IO, [
    ['so many rooms are named, and no long ones', 'named.length < ROOMS_MAX && room.length <= ROOM_CHARS', 'true'],
    ['links are let go of', "conn.off('upgrade', onUpgrade)", ''],
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
