/** Host, port and path of an address, without user name and password. */
export const stripCredentials = (url: string): string => {
  const { hostname, port, pathname } = new URL(url)
  return `${hostname || 'local socket'}${port ? `:${port}` : ''}${pathname === '/' ? '' : pathname}`
}
