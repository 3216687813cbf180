/** How a view is read for whoever watches it: each time as a request of its own, with its own deadline and bounds. */
import { Deadline } from '../../async/deadline.js'
import type { Awaitable } from '../../contract/page.js'
import { isWhole } from '../../http/etag.js'
import type { AccessScope } from '../authorization.js'
import type { ErrorPlace } from '../hooks.js'
import type { createQuestions, Question, RequestedRoute } from '../question.js'
import type { FoundView, OpenView, Watcher } from './watches.js'

/** For what no client waits for. */
const NOBODY = { signal: new AbortController().signal }

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

/** @returns what a watcher may see of a view, or a throw that says why it is none. */
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
        const deadline = new Deadline(deadlineMs, NOBODY)
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
        const deadline = new Deadline(deadlineMs, NOBODY)
        const version = put(deadline).version(true)
        if (version instanceof Promise) return version.finally(() => deadline.clear())
        deadline.clear()
        return version
      },
      now,
    }
  }
}
