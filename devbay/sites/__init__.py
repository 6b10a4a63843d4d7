"""What gives a bay its addresses: host ports, subnets, site names and the proxy in front of them."""
