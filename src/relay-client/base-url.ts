/** The rules for the option that says where routes begin. */

/** Whether paths can be put behind it as it stands, to reach what answers by HTTP. What is relative is read against `page`. */
function isBaseUrl(value: unknown, page?: string): boolean {
  if (typeof value !== 'string' || /[?#]/.test(value)) return false
  try {
    const { protocol, username, password } = new URL(value, page)
    return /^https?:$/.test(protocol) && username === '' && password === ''
  } catch {
    return false
  }
}

/** A rule for an option, as `contract/options.ts` checks them. */
const baseUrl = (said: string, page?: string) => ({
  said: `${said} without credentials, query and fragment`,
  test: (value: unknown) => isBaseUrl(value, page),
  isPrivate: true as const,
})

/** Where routes begin. */
export const BASE_URL = baseUrl('an http(s) URL')
/** The same for a page, which knows what a path is relative to. */
export const BASE_URL_OR_PATH = baseUrl('a path or an http(s) URL', 'http://page')
