/** Keys and whose they are, and a comparison whose time tells nothing of any of them. */
import { checkId } from '../contract/ids.js'

/** Keys by the name of who holds them; several of one name while they are being changed. */
export type NamedKeys =
  | Readonly<Record<string, string | readonly string[]>>
  | readonly { readonly name: string; readonly key: string }[]

/** Whose key it is, for whoever may look: `null` for no key of ours. */
type Keyring = (given: string) => { readonly name: string } | null

/** Whether the texts are equal, in a time that depends on `secret` alone. */
function equalsSecret(given: string, secret: string): boolean {
  let difference = given.length ^ secret.length
  for (let i = 0; i < secret.length; i++) difference |= given.charCodeAt(i) ^ secret.charCodeAt(i)
  return difference === 0
}

function entriesOf(keys: NamedKeys): [name: string, key: string][] {
  if (Array.isArray(keys)) return keys.map((entry) => [entry?.name, entry?.key])
  if (keys === null || typeof keys !== 'object') throw new TypeError('keys must be a text, or keys by their names')
  return Object.entries(keys).flatMap(([name, of]): [string, string][] =>
    (Array.isArray(of) ? of : [of]).map((key) => [name, key]),
  )
}

/**
 * A ring of `keys`; one without a name is the administrator's. Each look compares with all of them, wherever one fits.
 *
 * @param form What every key must look like, and how that is said.
 * @throws TypeError for a key that is blank or has another form, a name that is no id, a key of two names, and no key at all.
 */
export function createKeyring(keys: string | NamedKeys, form: { pattern: RegExp; said: string }): Keyring {
  const entries = typeof keys === 'string' ? ([['admin', keys]] as const) : entriesOf(keys)
  if (entries.length === 0) throw new TypeError('there is no administrator key')
  const names = new Map<string, string>()
  for (const [name, key] of entries) {
    const reason = typeof name === 'string' ? checkId(name) : 'must be a text'
    if (reason !== undefined) throw new TypeError(`the name of an administrator key ${reason}`)
    if (typeof key !== 'string' || key.trim() === '') throw new TypeError(`the administrator key of ${name} is blank`)
    if (!form.pattern.test(key)) throw new TypeError(`the administrator key of ${name} must be ${form.said}`)
    if ((names.get(key) ?? name) !== name) throw new TypeError(`${names.get(key)} and ${name} have the same key`)
    names.set(key, name)
  }
  const ring = [...names].map(([key, name]) => ({ key, principal: Object.freeze({ name }) }))
  return (given) => {
    let found: { readonly name: string } | null = null
    for (const { key, principal } of ring) if (equalsSecret(given, key)) found = principal
    return found
  }
}
