/** Reads a view for its watchers: each time as a request of its own, with its own deadline and limits. */
import { Deadline } from '../../async/deadline.js'
import type { Awaitable } from '../../contract/page.js'
import { isWhole } from '../../http/etag.js'
import type { AccessScope } from '../authorization.js'
import type { ErrorPlace } from '../hooks.js'
import type { createQuestions, Question, RequestedRoute } from '../question.js'
import type { FoundView, OpenView, Watcher } from './watches.js'

/** A request without a client that can disconnect. */
const NO_CLIENT = { signal: new AbortController().signal }

export interface OpenViewOptions<P> {
  question: ReturnType<typeof createQuestions>
  deadlineMs: number
  now(): number
  accessScopeFor(
    principal: P,
    asked: RequestedRoute,
    matched: { params: Record<string, string>; filters: Readonly<Record<string, unknown>> },
    visit: { request: Request; deadline: Deadline },
  ): Awaitable<AccessScope>
  reportError(error: unknown, place: ErrorPlace): void
}

/** @returns a function that opens a view for a watcher. It throws if the watcher has no access. */
export function createOpenView<P>(options: OpenViewOptions<P>) {
  const { question, deadlineMs, now, accessScopeFor, reportError } = options
  return async (
    { route: asked, params, given }: FoundView<RequestedRoute>,
    { request, principal }: Watcher<P>,
  ): Promise<OpenView> => {
    const { route } = asked
    const opening = new Deadline(deadlineMs, request)
    let accessScope: AccessScope
    try {
      accessScope = await accessScopeFor(
        principal,
        asked,
        { params, filters: given.filters },
        { request, deadline: opening },
      )
    } finally {
      opening.clear()
    }
    const place = (source?: string) => ({ route: route.path, ...(source === undefined ? {} : { source }) })
    const put = (deadline: Deadline, failed = () => {}): Question =>
      question(asked, { params, given, accessScope, deadline }, new Set(), (error, source) => {
        failed()
        reportError(error, place(source))
      })
    return {
      scope: JSON.stringify(accessScope.users ?? null),
      compared: route.compared,
      async read() {
        const deadline = new Deadline(deadlineMs, NO_CLIENT)
        let hasFailed = false
        const failed = () => {
          hasFailed = true
        }
        try {
          const answer = await put(deadline, failed).answer()
          return { encoded: answer.encoded, isWhole: !hasFailed && isWhole(answer) }
        } finally {
          deadline.clear()
        }
      },
      version() {
        const deadline = new Deadline(deadlineMs, NO_CLIENT)
        const version = put(deadline).version(true)
        if (version instanceof Promise) return version.finally(() => deadline.clear())
        deadline.clear()
        return version
      },
      now,
    }
  }
}
