/** The diagnostics router, the words of the contract that every family shares, and the views. */
import { weaken } from './mutant.mjs'

export const DIAGNOSTICS = [
  ...weaken('src/diagnostics/router.ts', 'test/diagnostics/authentication.test.ts', [
    [
      'an authenticator that names nobody lets nobody in',
      `if (principal && typeof name === 'string') {`,
      'if (principal) {',
    ],
    [
      'an authenticator has until the deadline',
      'await visit.deadline.race(auth.authenticate(visit.request))',
      'await auth.authenticate(visit.request)',
    ],
    [
      'a parameter of a path is an id',
      'checkParam: checkId',
      'checkParam: () => undefined',
      'test/diagnostics/paths.test.ts',
    ],
    [
      'another deployment than the expected one answers nothing',
      'expected !== null && expected !== deployment.id',
      'false',
      'test/diagnostics/paths.test.ts',
    ],
    [
      'what a host calls a request is an id',
      `typeof id === 'string' && checkId(id) === undefined ? id : null`,
      'id as string',
      'test/diagnostics/hooks.test.ts',
    ],
    [
      'requests that authentication refuses are told',
      'if (principal === null && given.status !== 403) return given',
      'if (principal === null) return given',
      'test/diagnostics/hooks.test.ts',
    ],
  ]),
  ...weaken('src/diagnostics/question.ts', 'test/diagnostics', [
    [
      'an inspector cannot lift the bounds of others',
      'Object.freeze({ examined: limits.examined })',
      '{ examined: limits.examined }',
    ],
  ]),
  ...weaken('src/diagnostics/watch/watches.ts', 'test/diagnostics/watch.test.ts', [
    ['watches of one principal are bounded', 'own >= WATCHES_PER_PRINCIPAL', 'own < 0'],
    ['watches that begin at once are bounded together', 'beginning.push(principal.name)', 'beginning.slice()'],
    ['whoever has left before a watch begins has none', '        request.signal.throwIfAborted()\n', ''],
    ['what could not be read is read for nobody', 'for (const reader of shared) reader.leaveIdle()', ''],
    [
      'a watcher who is nobody any more is sent away',
      "if (!(await isKnown())) return { reason: 'forbidden', retry: null }",
      '',
    ],
    [
      'a watcher who may see others now begins anew',
      "return isSame ? null : { reason: 'scope_changed', retry: 0 }",
      'return null',
    ],
    ['who sees some users shares no reader with who sees others', 'JSON.stringify([name, scope])', 'name'],
  ]),
  ...weaken('src/diagnostics/watch/reader.ts', 'test/diagnostics/watch.test.ts', [
    ['a version that is another is read', "typeof version === 'string' && version === this.#sourceVersion", 'version'],
  ]),
  ...weaken('src/diagnostics/watch/rows.ts', 'test/diagnostics/watch.test.ts', [
    ['a row that is another is sent', 'if (was?.compared !== row.compared)', 'if (!was)'],
    ['an age is no change of a row', 'compared: comparedRecord(text, of)', 'compared: text'],
  ]),
  ...weaken('src/diagnostics/tags.ts', 'test/diagnostics/tags.test.ts', [
    ['no request waits for the version of a store', '(isWatched || !remoteVersion)', 'true'],
  ]),
  ...weaken('src/diagnostics/question.ts', 'test/diagnostics/tags.test.ts', [
    ['what changes by itself has no version', 'asked.route.unversioned ? null : versionWithin', 'versionWithin'],
  ]),
  ...weaken('src/diagnostics/sites.ts', 'test/memory/versions.test.ts', [
    ['sites are others when their sessions are', "alsoReads: ['sessions'],", ''],
  ]),
  ...weaken('src/diagnostics/watch/feed.ts', 'test/diagnostics/watch.test.ts', [
    ['nothing is queued for a slow watcher', "pending.set(reader, { kind: 'reset' })", 'pending.size'],
  ]),
  ...weaken('src/views/findings/list.ts', 'test/diagnostics/findings.test.ts', [
    ['what is seen once is no finding', 'seen.findings.filter(({ finding_id }) => known.has(finding_id))', 'findings'],
    ['the second look has a part of the bounds', 'view, FIRST_SHARE)', 'view, 1)'],
  ]),
  ...weaken('src/diagnostics/hooks.ts', 'test/diagnostics/hooks.test.ts', [
    ['requests of nobody fill no log', 'if (told >= REFUSED_PER_SECOND) return void suppressed++', ''],
    ['the requests of nobody that were not told are counted', 'return void suppressed++', 'return'],
  ]),
  ...weaken('src/contract/ids.ts', 'test/diagnostics/paths.test.ts', [
    ['an id holds no format characters', String.raw`\p{Cc}\p{Cf}`, String.raw`\p{Cc}`, 'test/contract/ids.test.ts'],
    ['an id holds no control characters', String.raw`\p{Cc}\p{Cf}`, String.raw`\p{Cf}`, 'test/contract/ids.test.ts'],
    [
      'an id is bounded in bytes',
      'if (utf8Length(value) > ID_BYTES)',
      'if (value.length > ID_BYTES)',
      'test/contract/ids.test.ts',
    ],
    [
      'a reason is a name of low cardinality',
      `REASON.test(value) ? value : 'other'\n}`,
      'value\n}',
      'test/contract/ids.test.ts',
    ],
  ]),
  ...weaken('src/contract/page.ts', 'test/contract/page.test.ts', [
    ['a token of a sequence is one that was handed out', '!SEQUENCE.test(cursor) ||', ''],
  ]),
  ...weaken('src/contract/limits.ts', 'test/diagnostics/service.test.ts', [
    ['a host only lowers limits', 'value, ceiling)', 'value)'],
  ]),
  ...weaken('src/contract/json.ts', 'test/contract/json.test.ts', [
    [
      'what a host says of a node has its bound on the way out too',
      'return toJson(value, METADATA_BYTES).bytes > 0',
      'return true',
      'test/diagnostics/foreign-nodes.test.ts',
    ],
    ['a payload nests so deep', 'if (count === undefined) throw new Refusal', 'if (false) throw new Refusal'],
    ['what cannot fit is not even written', 'if (2 * count > maxBytes) throw', 'if (false) throw'],
    ['a payload has so many bytes', 'if (bytes > maxBytes) throw', 'if (false) throw'],
  ]),
  ...weaken('src/views/users.ts', 'test/views/users.test.ts', [
    [
      'users of a source come in their order',
      "if (typeof id !== 'string' || (last !== null && compareIds(id, last) <= 0))",
      "if (typeof id !== 'string')",
      'test/views',
    ],
  ]),
  ...weaken(
    'src/views/reading.ts',
    ['test/views'],
    [
      ['a walk that goes round ends', 'if (seen.has(cursor)) break', ''],
      ['a page of a walk holds no more than its limit', 'if (length > limit) throw', 'if (false) throw'],
      ['a page of a walk that goes on says where', `page.has_more && typeof page.next_cursor !== 'string'`, 'false'],
      [
        'a reading that left a record out is not whole',
        ' || records.length < page.items.length',
        '',
        'test/diagnostics/bad-records.test.ts',
      ],
    ],
  ),
  ...weaken('src/contract/bad-record.ts', 'test/diagnostics/bad-records.test.ts', [
    [
      'what is told of a record names no text of somebody',
      "NAME.test(String(part)) ? String(part) : '…'",
      'String(part)',
    ],
  ]),
  ...weaken('src/diagnostics/router.ts', 'test/diagnostics/bad-records.test.ts', [
    ['a host is told of so many records', 'if (fault && ++visit.leftOut > RECORDS_TOLD) return', ''],
  ]),
]
