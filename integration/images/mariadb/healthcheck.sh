#!/bin/sh
# The official image's probe. Both --connect and --innodb_initialized hold once the port answers: a server
# that refuses the credentials answers too.
exec mariadb-admin --protocol=tcp --host=127.0.0.1 --connect-timeout=2 ping
