/** The administrator's key: taken from the fragment or from its form, kept in memory, and for the tab only where that was asked for. */

const STORED = 'relayscope.key'

let key: string | null = null
let hadOne = false

/** Returns `null` if `act` throws: the page may have no access to storage, and a link may be wrongly encoded. */
function tried<T>(act: () => T): T | null {
  try {
    return act()
  } catch {
    return null
  }
}

/** Takes a key out of the address bar, so that neither the history nor a glance at the screen has it. @returns whether there was one. */
export function takeKey(): boolean {
  const text = location.hash.split(/^#key=/)[1]
  // An invalid percent-encoding means that the key was not encoded.
  const given = text && (tried(() => decodeURIComponent(text)) ?? text)
  if (given !== undefined) history.replaceState(null, '', '#/')
  key = given ?? key ?? tried(() => sessionStorage.getItem(STORED))
  hadOne ||= key !== null
  return given !== undefined
}

export const currentKey = () => key

/** Whether a key was submitted: then it was rejected rather than missing. */
export const hasSubmittedKey = () => hadOne

export function setKey(given: string, remember: boolean): void {
  key = given
  hadOne = true
  tried(() => (remember ? sessionStorage.setItem(STORED, given) : sessionStorage.removeItem(STORED)))
}

/** It was refused: what is kept of it would only be refused again. */
export function dropKey(): void {
  key = null
  tried(() => sessionStorage.removeItem(STORED))
}
