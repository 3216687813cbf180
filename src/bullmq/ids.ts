/** How a job is named as a command: by its queue and its own id, so that both can be read back. */
import { checkId } from '../contract/ids.js'

// What an id cannot have; `%` besides, which marks them. A queue's name has no colon, a job's id may.
const MARKED = /[%/\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

const encode = (text: string): string => text.replace(MARKED, (mark) => encodeURIComponent(mark))

/** The name of a job among the commands, `<queue>:<job>`; `null` for one that is too long for an id. */
export function commandIdOf(queue: string, job: string): string | null {
  if (/\p{Cs}/u.test(job)) return null
  const id = `${encode(queue)}:${encode(job)}`
  return checkId(id) === undefined ? id : null
}

/** What `commandIdOf` was given; `null` for what it never answers. */
export function jobOf(commandId: string): { queue: string; job: string } | null {
  const at = commandId.indexOf(':')
  if (at < 1) return null
  try {
    const queue = decodeURIComponent(commandId.slice(0, at))
    const job = decodeURIComponent(commandId.slice(at + 1))
    return job !== '' && commandIdOf(queue, job) === commandId ? { queue, job } : null
  } catch {
    return null
  }
}
