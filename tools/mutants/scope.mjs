/** Who may see what: the host's word, and inspectors that see some users only. */
import { weaken } from './mutant.mjs'

const VIEW = 'test/views/scope.test.ts'
const ROUTES = 'test/diagnostics/scope.test.ts'

export const SCOPE = [
  ...weaken('src/diagnostics/authorization.ts', 'test/diagnostics/authorization.test.ts', [
    ['a host that says no means it', 'if (word !== false) return seenOf', 'return seenOf'],
    ['what is neither yes nor users is no', 'if (word === true) return true', 'if (word) return true'],
    [
      'the host has until the deadline to say who may see what',
      'await deadline.race((authorize as Authorize<Principal>)(question))',
      'await (authorize as Authorize<Principal>)(question)',
    ],
    [
      'a host that fails to say who may see what says no',
      "throw new ProblemError('forbidden', {}, { cause })",
      'return true',
    ],
    [
      'what is of all users is for whoever sees them all',
      "if (!service.isAvailable(route.path)) throw new ProblemError('not_narrowable')",
      '',
      ROUTES,
    ],
    [
      'a route is closed to whoever sees some users until it says otherwise',
      'narrows === true',
      'narrows !== undefined || true',
      'test/diagnostics/authorization.test.ts',
    ],
    [
      'whoever sees some users is answered from these alone',
      'inspectors: scopeInspectors(inspectors, { user_ids: users }) as Present',
      'inspectors',
    ],
  ]),
  ...weaken('src/diagnostics/router.ts', 'test/diagnostics/authorization.test.ts', [
    ['what the host is asked with is not what is asked', 'filters: { ...filters }', 'filters'],
    ['the parameters that the host is asked with are a copy', 'params: { ...params }', 'params'],
  ]),
  ...weaken('src/http/cursor.ts', ROUTES, [
    ['a cursor is good for the users that it was given for', 'users === undefined ? list : [...list, users]', 'list'],
  ]),
  ...weaken('src/views/scope/seen.ts', VIEW, [
    ['a scope has no names that it does not know', 'if (unknown !== undefined) throw', 'if (false) throw'],
    [
      'a record of others is none',
      'record && record.user_id !== null && has(record.user_id) ? record : null',
      'record',
    ],
    ['an index of users is asked for those in sight', 'const asked = userIds.filter(has)', 'const asked = userIds'],
    [
      'an index of users tells of those in sight',
      'parts.filter(({ user_id }) => has(user_id))',
      'parts.filter(() => true)',
    ],
    [
      'an index counts one user as a whole, or nobody',
      'if (user === null || Object.values(others).some((value) => value !== undefined)) return null',
      'if (user === null) return null',
      ROUTES,
    ],
    ['somebody in sight is an id', '&& checkId(id) === undefined', '', 'test/diagnostics/authorization.test.ts'],
    ['a scope has so many users', 'if (known.size > SCOPE_MAX) throw', 'if (false) throw'],
  ]),
  ...weaken('src/views/scope/list.ts', VIEW, [
    ['a list shows whom it was asked for, whatever the source says', 'entry?.[by] === user_id &&', ''],
    ['a list of others has no tokens here', 'if (of !== scope) throw', 'if (false) throw'],
    [
      'a token goes on at somebody who was asked for',
      'if (page.cursor !== null && (at < first || at >= end)) throw',
      'if (false) throw',
    ],
    ['a list of many users asks so often', ' || budget.pages <= 0', ''],
    ['a list of many users looks at so much', ' || budget.entries <= 0', ''],
    ['a source that goes round ends a list of users', 'isStuck || ', ''],
    [
      'a source is asked for a user and nothing else',
      'list({ [by]: user_id } as OfOne<By>, query, asking)',
      'list({ ...filter, [by]: user_id } as OfOne<By>, query, asking)',
    ],
  ]),
  ...weaken('src/views/scope/registries.ts', VIEW, [
    [
      'the history of others’ connections is none',
      'if (!ifSeen(await registry.getConnection(id, ask), seen)) return null',
      '',
    ],
    ['windows of others are not counted', 'windows.filter(({ user_id }) => seen.has(user_id))', 'windows'],
    ['a count that left windows out says so', 'own.length === windowIds.length\n', 'true\n'],
    [
      'actions tell nothing of what others have lost',
      'return { items, next_cursor, has_more, ...',
      'return { examined: listed.examined, items, next_cursor, has_more, ...',
    ],
  ]),
  ...weaken('src/views/scope/cooperative.ts', 'test/diagnostics/scope.test.ts', [
    ['a site of others is none', 'record && has(record.owner) ? record : null', 'record'],
    [
      'sessions at sites of others are not counted',
      'countSessions: eachInSight(seen, ({ owner }) => owner, countSessions.bind(sessions))',
      'countSessions',
      VIEW,
    ],
  ]),
  ...weaken('src/views/scope/seen.ts', VIEW, [
    ['what is of all users is refused', "throw new Refusal('not_narrowable')", 'return undefined as never'],
  ]),
  ...weaken('src/views/scope/registries.ts', VIEW, [
    [
      'what is counted of all connections is refused',
      '...(connectionChurn && { connectionChurn: refuse }),',
      '...(connectionChurn && { connectionChurn: connectionChurn.bind(registry) }),',
    ],
  ]),
  ...weaken('src/views/scope/inspectors.ts', VIEW, [
    ['a stream of others is not asked for', 'if (owner === undefined) return { items: [], truncated: false }', ''],
    [
      'a name that begins another’s opens no stream',
      'stream.startsWith(`${userStream(userId)}/`)',
      'stream.startsWith(userStream(userId))',
    ],
    [
      'messages of others in a stream are left out',
      'sample.items.filter((message) => message?.user_id === owner)',
      'sample.items',
    ],
    ['a stream is listed under its own user', '({ stream, user_id }) => isIn(stream, user_id)', '() => true'],
    [
      'instances of others are unknown',
      'seen.has(instance.user_id) ? checkInstance.call(rpc, instance, ask) : NO_INSTANCE',
      'checkInstance.call(rpc, instance, ask)',
      ROUTES,
    ],
    ['what is counted of all calls is refused', '...(summary && { summary: refuse }),', '...(summary && { summary }),'],
    [
      'commands of others are unknown',
      'seen.has(key.user_id) ? ifSeen(await delivery.status(key, ask), seen) : null',
      'delivery.status(key, ask)',
      ROUTES,
    ],
    [
      'what the deduplicator has of others is nothing',
      'seen.has(userId) ? ifSeen(await userSummary.call(deduplicator, userId, ask), seen) : null',
      'userSummary.call(deduplicator, userId, ask)',
    ],
  ]),
]
