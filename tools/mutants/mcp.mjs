/** Who may let an agent look, what it is shown as what, and how much that may cost. */
import { weaken } from './mutant.mjs'

const [DOOR, HONEST, HOSTILE, STDIO, TOOLS] = ['door', 'honest', 'hostile', 'stdio', 'tools'].map(
  (name) => `test/mcp/${name}.test.ts`,
)

export const MCP = [
  ...weaken('src/mcp/untrusted.ts', HOSTILE, [
    ['no id ends the fence around it', '`${UNSEEN.source}|<`', 'UNSEEN.source'],
    ['an agent is shown what nobody sees', '`${UNSEEN.source}|<`', "'<'"],
    [
      'a name of a member is shown as a value is',
      '[change(name), mapTexts(part, change)]',
      '[name, mapTexts(part, change)]',
    ],
    ['an id leads back as it was shown', 'String.fromCodePoint(point)', 'whole'],
    ['a number that is no character stays', 'point > 0x10ffff ? whole : ', ''],
  ]),
  ...weaken('src/mcp/untrusted.ts', HONEST, [
    ['no character is cut in two', `.replace(/<[^>]*$/, '')`, ''],
    ['words of a router are bounded as they are shown', 'whole.length <= most ? whole : ', 'true ? whole : '],
  ]),
  ...weaken('src/mcp/answer.ts', HONEST, [
    ['names of a router are bounded', '.slice(0, NAMES)', ''],
    ['what was cut is not complete', 'const complete = found.complete && !isCut', 'const complete = found.complete'],
    ['a part does not read as a total', `'NOT COMPLETE: a part, never a total.'`, `''`],
    [
      'no cursor passes over what was cut',
      'kept.length < all.length ? null : (next_cursor ?? null)',
      'next_cursor ?? null',
    ],
    ['an answer for an agent is bounded', 'if (used + size <= bytes) kept.push(record)', 'if (true) kept.push(record)'],
    ['what is left out of a record is named', 'left = shrunk.left', ''],
  ]),
  ...weaken('src/mcp/tools/page.ts', HONEST, [
    ['a page with more behind it is a part', `has_more === true ? ['More records follow this page.'] : []`, '[]'],
    ['the last page is a part', `cursor === undefined ? [] : ['The pages before this one are not here.']`, '[]'],
    ['an aggregate that was cut short is a sample', 'if (complete !== false) return []', 'if (true) return []'],
    ['a record that is left out of a page is missed', `typeof omitted === 'number'`, 'false'],
    ['messages are a sample', `typeof has_more === 'boolean' ? [] : [`, `true ? [] : [`],
  ]),
  ...weaken('src/mcp/tools/overview.ts', HONEST, [
    [
      'a part that nobody answered is told',
      '(part.notes?.(answer.value) ?? []) : [unknown(name, answer)]',
      '(part.notes?.(answer.value) ?? []) : []',
    ],
    ['an overview that was cut is one', '.partial()', ''],
    ['what is no part of a deployment is not unknown', 'status === 501', 'false'],
  ]),
  ...weaken('src/mcp/tools/page.ts', DOOR, [
    [
      'somebody else says nothing of a record',
      `status === 404 && problem.startsWith('404 not_found:')`,
      'status === 404',
    ],
  ]),
  ...weaken('src/mcp/tools/records.ts', HOSTILE, [
    ['payloads are left out', 'payload !== undefined && !payloads', 'false'],
  ]),
  ...weaken('src/mcp/tools/tool.ts', TOOLS, [
    ['an id does not lead to another route', `!['', '.', '..'].includes(value)`, `value !== ''`],
  ]),
  ...weaken('src/mcp/server.ts', HOSTILE, [
    [
      'a message of ours is not shown to an agent',
      `refused('500 internal: The request failed')`,
      'refused(String(error))',
    ],
    ['ids are read as they were shown', 'mapTexts(input, unshown)', 'mapTexts(input, String)'],
  ]),
  ...weaken('src/mcp/source.ts', DOOR, [
    [
      'a question ends within its time',
      'return await raceAbort(put(source, route, caller, signal), signal)',
      'return await put(source, route, caller, left)',
    ],
    ['so many questions are put at once', 'const AT_ONCE = 16', 'const AT_ONCE = 400'],
    ['so many questions wait', 'const WAITING = 256', 'const WAITING = 4_096'],
    ['who gave up gives his turn back', 'if (isMine) turns.release()', 'if (isMine) void 0'],
    ['a router elsewhere is not followed to', `redirect: 'manual'`, `redirect: 'follow'`],
    [
      'a router elsewhere hears the key alone',
      `for (const name of ['x-admin-key', 'authorization']) {`,
      'for (const name of caller.keys()) {',
    ],
    ['an answer without an end is left', 'const ANSWER_BYTES = 16_777_216', 'const ANSWER_BYTES = 67_108_864'],
    [
      'words from elsewhere are shown as text',
      'shownWithin(problemWords(response.status, body), WORDS)',
      'problemWords(response.status, body)',
    ],
    [
      'what was thrown is not told to an agent',
      `return problem('nobody answers there')`,
      'return problem(String(error))',
      HOSTILE,
    ],
  ]),
  ...weaken('src/mcp/mcp.ts', DOOR, [
    ['agents come by a name that is known', 'if (refusal !== undefined) throw new ProblemError(refusal)', ''],
    ['a page of another port is a foreign one', ', port: portOf(host) })', ' })'],
    ['a router that cannot be asked lets nobody in', `throw new ProblemError('inspector_unavailable')`, 'return true'],
    ['a token is a key behind the door, too', 'return asKey ?? request', 'return request'],
    ['a batch is no message', 'if (Array.isArray(parsedBody))', 'if (false)'],
    [
      'an agent without a name is refused',
      `(await deadline.race(auth.authenticate(request)))?.name === 'string'`,
      `(await deadline.race(auth.authenticate(request)))?.name !== 'number'`,
    ],
  ]),
  ...weaken('src/mcp/options.ts', DOOR, [
    ['a key of the host is not everybody’s', 'if (key !== undefined && auth === undefined)', 'if (false)'],
    [
      'an auth that nobody has set opens nothing',
      `for (const name of ['key', 'auth'] as const)`,
      `for (const name of [] as ('key' | 'auth')[])`,
    ],
    [
      'only this machine may come unless it is said',
      'allowedHosts = [LOOPBACK_NAMES]',
      `allowedHosts = [LOOPBACK_NAMES, 'evil.example']`,
    ],
  ]),
  ...weaken('src/cli/mcp.ts', STDIO, [
    ['a conversation ends at what is too long', '{ maxBufferSize: MESSAGE_BYTES }', '{}'],
    ['who ends a conversation is heard', 'resolve(1)', ''],
  ]),
]
