/** The viewers of the cooperative sites: guests with tokens, kept in a file so that they survive a restart. */
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { bearerOf } from './wire/http.mjs'

// More tabs than a person opens; at the bound the oldest guest leaves.
const VIEWERS_MAX = 100

/** Guests of one session, called `name` and a number. `file` may be missing. */
export async function openViewers({ file, name, sessions, session_id }) {
  const text = await readFile(file, 'utf8').catch(() => '{"count":0,"guests":[]}')
  const { count, guests } = JSON.parse(text)
  const tokens = new Map(guests)
  let guest = count

  const share = (user_id) => sessions.share(session_id, { user_id, rights: ['view', 'invoke'] })
  const save = () => writeFile(file, JSON.stringify({ count: guest, guests: [...tokens] }), { mode: 0o600 })
  for (const user_id of tokens.values()) await share(user_id)

  async function revoke(user_id) {
    for (const [token, guest] of tokens) if (guest === user_id) tokens.delete(token)
    await save()
    return sessions.unshare(session_id, { user_id })
  }

  return {
    /** A new guest. */
    async invite() {
      const user_id = `${name}-${++guest}`
      const token = randomBytes(32).toString('base64url')
      tokens.set(token, user_id)
      if (tokens.size > VIEWERS_MAX) await revoke(tokens.values().next().value)
      await share(user_id)
      await save()
      return { user_id, token }
    },
    /** The guest that a request is from, or `null`. */
    authenticate(request) {
      const user_id = tokens.get(bearerOf(request))
      return user_id === undefined ? null : { user_id }
    },
    /** Takes a guest's rights: its streams end, its token is void. Whether there was one. */
    revoke,
  }
}
