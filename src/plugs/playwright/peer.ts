/** The used part of Playwright's browser, context and page. */

export interface FollowedPage {
  isClosed(): boolean
  on(event: 'close' | 'crash', listener: () => void): unknown
  off(event: 'close' | 'crash', listener: () => void): unknown
}

// A page's type is that of `pages()`: of the many events of the peer, which are overloads, the last one would be taken.
/** The members of a browser context that are used. */
export interface FollowedBrowserContext<P> {
  pages(): readonly P[]
  on(event: 'page', listener: (page: NoInfer<P>) => void): unknown
  on(event: 'close', listener: () => void): unknown
  off(event: 'page', listener: (page: NoInfer<P>) => void): unknown
  off(event: 'close', listener: () => void): unknown
}

/** `context` is an event of later versions: without it a browser context is found at the next look. */
export interface FollowedBrowser<C, P> {
  contexts(): readonly (C & FollowedBrowserContext<P>)[]
  on(event: 'context', listener: (context: C & FollowedBrowserContext<P>) => void): unknown
  on(event: 'disconnected', listener: () => void): unknown
  off(event: 'context', listener: (context: C & FollowedBrowserContext<P>) => void): unknown
  off(event: 'disconnected', listener: () => void): unknown
}
