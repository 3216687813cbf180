/** What stands between a viewer's wish and the one call that it may become. */
import { weaken } from './mutant.mjs'

const GATE = 'test/cooperative-site/gate-conditions.test.ts'
const DEFENCES = 'test/cooperative-site/defences.test.ts'

export const ACTIONS = [
  ...weaken('src/cooperative-site/actions/gate.ts', DEFENCES, [
    ['everything is read again after the approval', 'if (approve || claim) admitted = await recheck(input)', ''],
    ['a call takes so long', 'timeout_ms > TIMEOUT_MAX_MS)', 'false)', 'test/cooperative-site/defences-calls.test.ts'],
    [
      'a viewer has so many calls under way',
      'const release = calls.take(viewer.user_id)',
      'const release = () => {}',
      'test/cooperative-site/gate-deadline.test.ts',
    ],
    [
      'who may not see the session takes no place in it',
      `const session = await read(() => findSession(deps, session_id, viewer), signal)
      // Not earlier: whoever may not see the session takes no place in it, and does not learn that it has none left.
      const release = calls.take(viewer.user_id)`,
      `const release = calls.take(viewer.user_id)
      const session = await read(() => findSession(deps, session_id, viewer), signal)`,
      'test/cooperative-site/gate-deadline.test.ts',
    ],
    [
      'what may have run does not run again',
      'if (sent && !isUnsent(error)) await claim?.keep(null)',
      'if (false) await claim?.keep(null)',
      'test/cooperative-site/gate-idempotency.test.ts',
    ],
    [
      'what was certainly not sent can be sent again',
      'if (sent && !isUnsent(error)) await',
      'if (sent) await',
      'test/cooperative-site/gate-idempotency.test.ts',
    ],
    [
      'a store has so long to answer',
      `withTimeout(work, { ms: deadlineMs, code: 'unavailable', signal })`,
      `work()`,
      'test/cooperative-site/gate-deadline.test.ts',
    ],
  ]),
  ...weaken('src/cooperative-site/actions/check-action.ts', GATE, [
    [
      'a policy that does not answer true says no',
      'return (await policy.check(question)) === true',
      'return Boolean(await policy.check(question))',
      DEFENCES,
    ],
    [
      'a policy that throws says nothing',
      `throw new Refusal('unavailable', 'the policy failed', { cause: error })`,
      'return true',
      'test/cooperative-site/gate.test.ts',
    ],
    [
      'an absent session costs what a foreign one does',
      `const mayView = await isAllowed(judge, { viewer, session, right: 'view' })`,
      `const mayView = found ? await isAllowed(judge, { viewer, session, right: 'view' }) : false`,
      DEFENCES,
    ],
    ['a session is seen by whom its policy lets', 'if (!found || !mayView) throw', 'if (!found) throw', DEFENCES],
    ['an action needs an active session', `if (session?.state !== 'active') return`, 'if (!session) return'],
    [
      'an action needs a site of its session’s owner',
      '!site || site.owner !== session.owner || site.mode',
      '!site || site.mode',
    ],
    ['an action needs a cooperative site', ` || site.mode !== 'cooperative'`, ''],
    [
      'an action needs the site’s profile to allow it',
      `if (site.capability_profile.action_invocation !== true) return 'action_invocation_disabled'`,
      '',
    ],
    [
      'an action must be on the list',
      '!site.action_names.includes(action) || isGenericActionName(action)',
      'isGenericActionName(action)',
    ],
    [
      'an action is none that stands for any',
      '!site.action_names.includes(action) || isGenericActionName(action)',
      '!site.action_names.includes(action)',
    ],
    ['an action needs the right to invoke', `if (!mayInvoke) throw new Refusal('forbidden')`, ''],
    [
      'a connector is the owner’s own',
      'connector === null || connector.user_id !== owner',
      'connector === null',
      ['test/cooperative-site/gate-conditions.test.ts', 'test/cooperative-site/gate.test.ts'],
    ],
  ]),
  ...weaken('src/cooperative-site/relay-handlers.ts', 'test/cooperative-site/router-actions.test.ts', [
    ['permission comes before a body is read', 'await requireInvoker(relay, { session, viewer: who, action })', ''],
    ['an idempotency key is an id', 'const reason = checkId(key)', 'const reason = undefined as string | undefined'],
    [
      'a site is shown to its owner',
      `if (site?.owner !== who.user_id) throw new ProblemError('not_found')`,
      `if (!site) throw new ProblemError('not_found')`,
      'test/cooperative-site/router-sites.test.ts',
    ],
    [
      'a registry of a class is called as one',
      'sites.put?.bind(sites)',
      'sites.put',
      'test/cooperative-site/router-sites.test.ts',
    ],
    [
      'events of a session are those of its owner’s site',
      'if (!viewable || site?.owner !== session.owner) throw',
      'if (!viewable) throw',
      'test/cooperative-site/event-stream-refusal.test.ts',
    ],
    [
      'events need a session under way',
      'if (!viewable || site?.owner !== session.owner) throw',
      'if (site?.owner !== session.owner) throw',
      'test/cooperative-site/event-stream-refusal.test.ts',
    ],
  ]),
  ...weaken('src/cooperative-site/router.ts', 'test/cooperative-site/router.test.ts', [
    [
      'a principal without a key is a user id and nothing else',
      'if (who.key === undefined) return { user_id: who.user_id }',
      'if (who.key === undefined) return who',
      DEFENCES,
    ],
    ['a principal has an id', 'if (!Id.safeParse(who.user_id).success) return undefined', ''],
    [
      'a path that is none is told to who is known',
      'return authenticate(request, authenticateHost).catch(() => authenticate(request, authenticateViewer))',
      `throw new ProblemError('route_not_found')`,
    ],
    [
      'a closed relay takes nothing in',
      `if (closed) throw new ProblemError('unavailable')`,
      '',
      ['test/cooperative-site/router.test.ts', 'test/cooperative-site/event-stream-end.test.ts'],
    ],
    [
      'a parameter of the relay is one segment',
      'checkParam: checkSegmentId',
      'checkParam: () => undefined',
      ['test/cooperative-site/router-sites.test.ts', 'test/cooperative-site/router.test.ts'],
    ],
  ]),
  ...weaken('src/cooperative-site/actions/parameters.ts', 'test/cooperative-site/gate-parameters.test.ts', [
    ['parameters hold no prototype', `if (key === '__proto__') throw refuse('a key must not be __proto__')`, ''],
    [
      'what is approved is what runs',
      'return Object.freeze({ ...made })',
      'return { ...made }',
      'test/cooperative-site/handlers.test.ts',
    ],
    [
      'reserved parameters are written beside no list',
      'Array.isArray(made) ||',
      '',
      'test/cooperative-site/handlers.test.ts',
    ],
    ['parameters nest so deep', 'if (depth === JSON_DEPTH) throw', 'if (false) throw'],
    ['parameters hold so many objects and lists', 'if (budget.containers-- === 0) throw', 'if (false) throw'],
    [
      'parameters have so many bytes',
      'if (bytes > PARAMETERS_BYTES) throw',
      'if (false) throw',
      'test/cooperative-site/defences-calls.test.ts',
    ],
    [
      'parameters are plain JSON',
      `if (typeof value !== 'object' || !isPlain(value)) throw`,
      `if (typeof value !== 'object') throw`,
    ],
    ['a name of the runtime is refused', 'name.startsWith(RESERVED_PREFIX)', 'false'],
    [
      'what the runtime says is written last',
      '{ ...parameters, [SESSION_PARAMETER]: sessionId, [SITE_PARAMETER]: siteId }',
      '{ [SESSION_PARAMETER]: sessionId, [SITE_PARAMETER]: siteId, ...parameters }',
      ['test/cooperative-site/gate-parameters.test.ts', 'test/cooperative-site/handlers.test.ts'],
    ],
    [
      'what was approved cannot be changed',
      'return Object.freeze(copy)',
      'return copy',
      ['test/cooperative-site/gate-approval.test.ts', 'test/cooperative-site/gate-parameters.test.ts'],
    ],
  ]),
  ...weaken('src/cooperative-site/actions/approval.ts', 'test/cooperative-site/gate-approval.test.ts', [
    ['an approval that is not true is a no', 'if (answer !== true) throw', 'if (!answer) throw', DEFENCES],
  ]),
  ...weaken('src/cooperative-site/actions/shares.ts', 'test/cooperative-site/gate-races.test.ts', [
    [
      'calls under way are counted by user',
      'if (own >= perUser) throw',
      'if (size >= perUser) throw',
      'test/cooperative-site/gate.test.ts',
    ],
  ]),
  ...weaken('src/cooperative-site/actions/handlers.ts', 'test/cooperative-site/handlers.test.ts', [
    ['a call delivered twice runs once', 'if (seen.has(id)) return false', ''],
    [
      'ids of calls that were seen are bounded',
      'if (seen.size > SEEN_MAX && oldest !== undefined) seen.delete(oldest)',
      '',
    ],
    [
      'an authorizer that does not answer true says no',
      'check === undefined || (await check(parameters, context)) === true',
      'check === undefined || Boolean(await check(parameters, context))',
    ],
    ['what came is frozen before a schema sees it', 'safeParseAsync(deepFreeze(own))', 'safeParseAsync(own)'],
    ['what a schema has made is not frozen', 'ownParameters(read.data)', 'deepFreeze(read.data)'],
    [
      'a lease comes back when its handler fails',
      `    try {
      return await handler(withReserved(parameters, sessionId, siteId), context)
    } finally {
      if (lease !== undefined) leases.delete(lease)
    }`,
      `    const result = await handler(withReserved(parameters, sessionId, siteId), context)
    if (lease !== undefined) leases.delete(lease)
    return result`,
      DEFENCES,
    ],
    [
      'a lease is a name, or whether there is one',
      '(value) => FLAG.test(value) || TEXT.test(value)',
      '() => true',
      'test/contract/options.test.ts',
    ],
    [
      'a lease is held by one call',
      `if (lease !== undefined && leases.has(lease)) throw new ActionFailure('busy')`,
      '',
    ],
    ['a generic name is no action', `if (isGenericActionName(name)) throw new Refusal('generic_action_name')`, ''],
    ['a call that nobody waits for does not run', 'if (context.signal.aborted) throw cancelled()', ''],
    ['parameters that a handler declared otherwise are refused', 'if (!read.success) throw', 'if (false) throw'],
    ['an approver of a handler is asked', `if (!(await allowed(options.approve))) throw`, 'if (false) throw'],
  ]),
  ...weaken('src/cooperative-site/actions/keyed-call.ts', 'test/cooperative-site/gate-idempotency.test.ts', [
    [
      'a key is kept with a digest of its call',
      'await digest(canonicalJson({ action, parameters, timeout_ms }))',
      'canonicalJson({ action, parameters, timeout_ms })',
      'test/cooperative-site/defences-calls.test.ts',
    ],
    ['a key stands for one call', `if (found.state === 'reused') throw`, 'if (false) throw'],
    ['a key whose call is under way waits for it', `if (found.state === 'running') throw`, 'if (false) throw'],
    ['a call whose outcome is unknown does not run again', `if (found.answer === null) throw`, 'if (false) throw'],
    [
      'a claim that may have come through is given back',
      `if (!(error instanceof Refusal && error.code === 'capacity_exceeded')) await release()`,
      '',
      'test/cooperative-site/defences-calls.test.ts',
    ],
  ]),
  ...weaken('src/memory/cooperative/idempotency.ts', 'test/cooperative-site/idempotency.test.ts', [
    [
      'another call under the same key is told',
      `if (known.fingerprint !== claim.fingerprint) return { state: 'reused' }`,
      '',
    ],
    [
      'a claim whose lease ran out reads as unknown',
      `return entries.hasEnded(known) ? { state: 'ended', answer: null } : { state: 'running' }`,
      `return { state: 'running' }`,
    ],
    [
      'only the attempt that claimed says what it came to',
      'entry?.attempt === claim.attempt && entry.answer === undefined ? entry : undefined',
      'entry',
    ],
    [
      'a call under way keeps its key',
      `return entries.hasEnded(known) ? { state: 'ended', answer: null } : { state: 'running' }`,
      `return { state: 'ended', answer: null }`,
    ],
  ]),
  ...weaken('src/memory/cooperative/idempotency-entries.ts', 'test/cooperative-site/idempotency.test.ts', [
    ['a viewer has so many keys', 'if (own && own.size >= keysPerViewer) {', 'if (false) {'],
    [
      'keys are bounded',
      'if (entries.size < maxKeys) return',
      'if (entries.size >= 0) return',
      'test/cooperative-site/defences-calls.test.ts',
    ],
    ['answers are bounded in bytes', 'while (bytes > maxBytes) {', 'while (false) {'],
    [
      'a key that goes is of whoever holds most',
      'byKeys.weigh(holder, holder.entries.size)',
      'byKeys.weigh(holder, Math.min(1, holder.entries.size))',
    ],
    [
      'an answer that goes is of whoever holds most',
      'byBytes.weigh(holder, holder.answered.size > 0 ? holder.bytes : 0)',
      'byBytes.weigh(holder, Math.min(1, holder.answered.size))',
    ],
    [
      'who has no answer to give up keeps nobody from giving one up',
      'byBytes.weigh(holder, holder.answered.size > 0 ? holder.bytes : 0)',
      'byBytes.weigh(holder, holder.bytes)',
    ],
    ['a key stands for ten minutes', 'if (entry.at + IDEMPOTENCY_KEPT_MS > now()) return', ''],
  ]),
  ...weaken(
    'src/cooperative-site/actions/dispatch-connector.ts',
    ['test/cooperative-site/dispatch-connector.test.ts', 'test/cooperative-site/dispatch-connector-lost.test.ts'],
    [
      ['a dispatcher that did not answer may have sent', 'if (mayHaveSent(error)) return sendAgain(command)', ''],
      ['a command that has ended is not run again', `if (status.terminal !== null) throw`, 'if (false) throw'],
      ['a command that was not admitted was not sent', `if (status.admission.state === 'rejected')`, 'if (false)'],
      ['an action is attempted once', 'maxAttempts: 1,', ''],
      ['an action waits for nobody', 'requireWaiter: true,', ''],
      [
        'a client that is not connected is not asked',
        'if (instance_id === null) throw',
        'if (false) throw',
        'test/cooperative-site/defences-calls.test.ts',
      ],
      [
        'what was never admitted is in no history',
        'if (isAdmitted) recorded()',
        'recorded()',
        'test/cooperative-site/defences-calls.test.ts',
      ],
      [
        'a viewer that leaves cancels the command',
        'onAbort(signal.aborted ? signal : caller.signal, cancel)',
        '() => {}',
      ],
      [
        'time that is up cancels nothing',
        "if (!(reason instanceof Refusal && reason.code === 'action_timeout')) left",
        'left',
      ],
    ],
  ),
  ...weaken(
    'src/cooperative-site/actions/action-reply.ts',
    ['test/cooperative-site/dispatch-connector.test.ts', 'test/cooperative-site/dispatch-connector-lost.test.ts'],
    [
      [
        'a reply that a pending call refused settles nothing',
        'if (!settled && !(await hasEnded(correlation_id))) return false',
        '',
        'test/cooperative-site/defences-calls.test.ts',
      ],
      [
        'a reply to a command that ended otherwise is recorded nowhere',
        'if (!settled && !ended && !(await hasEndedWith(from, end))) return false',
        '',
      ],
      ['a repeated call is no reply', 'if (given === undefined) return false', ''],
      ['who replies has taken the command', ', acknowledge: true }', ' }'],
    ],
  ),
]
